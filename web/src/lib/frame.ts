// Work that waits for the next animation frame, so that thousands of chunks a second cost one rendering each frame.

/** A function that runs `work` once in the next frame, however often it is called before. */
export function perFrame(work: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    const run = () => {
      if (!asked) return;
      asked = false;
      work();
    };
    requestAnimationFrame(run);
    // A hidden page has no frames.
    if (document.hidden) setTimeout(run, 250);
  };
}
