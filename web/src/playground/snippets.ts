// The same request as a program: curl, Python, Node.
import { at } from "../lib/base";

export type Language = "curl" | "python" | "node";

/** A program with the data of attached pictures shortened, to be looked at. */
export const shortened = (code: string) => code.replace(/(data:[\w/+.-]+;base64,)[\w/+=]{64,}/g, "$1…");

const OWN = new Set(["model", "messages", "stream", "stream_options", "temperature", "max_tokens", "tools", "n"]);

/** The request as a program that can be run; a key is never written, only the name of a variable. */
export function snippet(language: Language, body: Record<string, unknown>): string {
  const root = at("v1");
  if (language === "curl") {
    // By standard input: a picture is longer than an argument may be. JSON has no line that is JSON alone.
    return `curl -N ${root}/chat/completions \\\n  -H "Authorization: Bearer \${TRUNKLINE_API_KEY:-none}" \\\n  -H "Content-Type: application/json" \\\n  -d @- <<'JSON'\n${JSON.stringify(body, null, 2)}\nJSON\n`;
  }
  const known = Object.entries(body).filter(([name]) => OWN.has(name));
  const extra = Object.fromEntries(Object.entries(body).filter(([name]) => !OWN.has(name)));
  if (language === "python") {
    const lines = known.map(([name, value]) => `    ${name}=${python(value, 1)},`);
    if (Object.keys(extra).length) lines.push(`    extra_body=${python(extra, 1)},`);
    return (
      `import os\n\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=${JSON.stringify(root)}, api_key=os.environ.get("TRUNKLINE_API_KEY", "none"))\n` +
      `stream = client.chat.completions.create(\n${lines.join("\n")}\n)\n` +
      `for chunk in stream:\n    if chunk.choices and chunk.choices[0].delta.content:\n        print(chunk.choices[0].delta.content, end="", flush=True)\n`
    );
  }
  const json = JSON.stringify(body, null, 2);
  return (
    `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: ${JSON.stringify(root)}, apiKey: process.env.TRUNKLINE_API_KEY ?? "none" });\n` +
    `const stream = await client.chat.completions.create(${json});\n` +
    `for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");\n`
  );
}

/** A JSON value as Python writes it. */
function python(value: unknown, depth: number): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = "    ".repeat(depth + 1);
  const end = "    ".repeat(depth);
  if (Array.isArray(value)) return value.length ? `[\n${value.map((item) => `${inner}${python(item, depth + 1)},\n`).join("")}${end}]` : "[]";
  const entries = Object.entries(value);
  if (!entries.length) return "{}";
  return `{\n${entries.map(([name, item]) => `${inner}${JSON.stringify(name)}: ${python(item, depth + 1)},\n`).join("")}${end}}`;
}
