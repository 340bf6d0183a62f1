/** The interval in a background tab, which has no animation frames. */
const UNSEEN_MS = 250

/**
 * Returns a function that runs `work` once in the next animation frame, however often it is called before. In a
 * background tab it runs a few times a second, so that nothing accumulates.
 */
export function onNextFrame(work: () => void): () => void {
  let isDue = false
  const run = () => {
    isDue = false
    work()
  }
  return () => {
    if (isDue) return
    isDue = true
    if (document.hidden) setTimeout(run, UNSEEN_MS)
    else requestAnimationFrame(run)
  }
}
