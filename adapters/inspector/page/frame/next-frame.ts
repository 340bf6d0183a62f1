/** Longest wait where nothing is painted, as in a tab that is not looked at. */
const UNSEEN_MS = 250

/**
 * Gives back a function that has `work` done once, with the next picture that the browser paints, however often it is called
 * before that; a tab in the background does it a few times a second, so that nothing piles up there.
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
