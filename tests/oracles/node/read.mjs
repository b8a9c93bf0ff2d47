// Reads streams with the Node.js libraries: one JSON line in, one out.
import { createInterface } from "node:readline";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";

// Answers alone go to stdout.
console.log = console.info = console.debug = console.error;
globalThis.AI_SDK_LOG_WARNINGS = false;

const choiceOf = (told, index) => (told.choices[index] ??= { text: "", reasoning: "", calls: {}, finish: [] });

async function raw({ url, key, request }) {
  const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0, timeout: 60000 });
  const told = { choices: {}, usage: [], chunks: 0 };
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
    told.chunks += 1;
    Object.assign(told, { id: chunk.id, model: chunk.model, created: chunk.created });
    if (chunk.usage) told.usage.push(chunk.usage);
    for (const choice of chunk.choices ?? []) {
      const kept = choiceOf(told, choice.index ?? 0);
      kept.text += choice.delta?.content ?? "";
      kept.reasoning += choice.delta?.reasoning_content ?? "";
      for (const call of choice.delta?.tool_calls ?? []) {
        const of = (kept.calls[call.index] ??= { id: null, name: "", arguments: "" });
        of.id ??= call.id;
        of.name ||= call.function?.name ?? "";
        of.arguments += call.function?.arguments ?? "";
      }
      if (choice.finish_reason) kept.finish.push(choice.finish_reason);
    }
  }
  return told;
}

async function helper({ url, key, request }) {
  const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0, timeout: 60000 });
  const told = { choices: {}, usage: [], chunks: 0 };
  const stream = client.chat.completions.stream({ ...request, stream: true });
  stream.on("chunk", () => (told.chunks += 1));
  const whole = await stream.finalChatCompletion();
  Object.assign(told, { id: whole.id, model: whole.model, created: whole.created });
  if (whole.usage) told.usage.push(whole.usage);
  for (const choice of whole.choices) {
    const kept = choiceOf(told, choice.index ?? 0);
    kept.text = choice.message.content ?? "";
    kept.role = choice.message.role;
    kept.reasoning = choice.message.reasoning_content ?? "";
    for (const [index, call] of (choice.message.tool_calls ?? []).entries())
      kept.calls[index] = { id: call.id, name: call.function.name, arguments: call.function.arguments };
    if (choice.finish_reason) kept.finish.push(choice.finish_reason);
  }
  return told;
}

async function aiSdk({ url, key, request }) {
  const provider = createOpenAICompatible({
    name: "gateway", baseURL: url, apiKey: key,
    includeUsage: Boolean(request.stream_options?.include_usage),
  });
  const tools = {};
  for (const { function: { name, description, parameters } } of request.tools ?? [])
    tools[name] = tool({ description, inputSchema: jsonSchema(parameters) });
  const told = { choices: {}, usage: [], chunks: 0 };
  const kept = choiceOf(told, 0);
  const errors = [];
  const result = streamText({
    model: provider(request.model), messages: request.messages, maxRetries: 0, onError: () => {},
    ...(request.tools ? { tools } : {}),
  });
  for await (const part of result.fullStream) {
    told.chunks += 1;
    if (part.type === "text-delta") kept.text += part.text;
    else if (part.type === "reasoning-delta") kept.reasoning += part.text;
    else if (part.type === "tool-call")
      kept.calls[Object.keys(kept.calls).length] = { id: part.toolCallId, name: part.toolName, arguments: JSON.stringify(part.input) };
    else if (part.type === "finish-step") {
      Object.assign(told, { id: part.response.id, model: part.response.modelId });
      if (part.finishReason !== "error") kept.finish.push(part.finishReason.replace("-", "_"));
      const { inputTokens, outputTokens, totalTokens } = part.usage;
      if (inputTokens !== undefined)
        told.usage.push({ prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: totalTokens });
    } else if (part.type === "error") errors.push(part.error);
  }
  if (errors.length) told.error = described(errors[0]);
  return told;
}

async function langchain({ url, key, request }) {
  const { model, messages, stream_options, n, ...rest } = request;
  const chat = new ChatOpenAI({
    model, apiKey: key, configuration: { baseURL: url }, maxRetries: 0, timeout: 60000, ...(n ? { n } : {}),
    streamUsage: Boolean(stream_options?.include_usage),
  });
  const told = { choices: {}, usage: [], chunks: 0 };
  let whole;
  for await (const chunk of await chat.withConfig(rest).stream(messages)) {
    told.chunks += 1;
    whole = whole === undefined ? chunk : whole.concat(chunk);
  }
  if (whole === undefined) return told;
  const kept = choiceOf(told, 0);
  kept.text = typeof whole.content === "string" ? whole.content : JSON.stringify(whole.content);
  kept.role = whole.getType?.() ?? null;
  for (const [index, call] of (whole.tool_call_chunks ?? []).entries())
    kept.calls[index] = { id: call.id, name: call.name, arguments: call.args };
  if (whole.response_metadata?.finish_reason) kept.finish.push(whole.response_metadata.finish_reason);
  const usage = whole.usage_metadata;
  if (usage)
    told.usage.push({ prompt_tokens: usage.input_tokens, completion_tokens: usage.output_tokens, total_tokens: usage.total_tokens });
  Object.assign(told, { id: whole.id, model: whole.response_metadata?.model_name });
  return told;
}

const described = (error) => ({
  type: error?.name ?? error?.constructor?.name ?? typeof error,
  message: String(error?.message ?? error),
  code: error?.code ?? error?.data?.error?.code ?? null,
});

const modes = { node_raw: raw, node_helper: helper, ai_sdk: aiSdk, langchain_js: langchain };
process.on("unhandledRejection", () => {});
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let told;
  try {
    told = await modes[asked.mode](asked);
  } catch (error) {
    told = { error: described(error) };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
