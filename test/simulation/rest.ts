/** More turns of the event loop than anything takes that comes to an end. */
const MOST_TURNS = 5_000

/**
 * Resolves when nothing moves any more but by time: no promise is to be settled, no immediate is set, and nothing that
 * `isBusy` knows of is under way outside. Rejects if that never comes. Two turns of the event loop without an immediate
 * show it: between them every promise that could be settled was.
 */
export async function atRest(isBusy: () => boolean): Promise<void> {
  let turns = 0
  for (let still = 0; still < 2;) {
    await new Promise(resolve => setImmediate(resolve))
    if (!isBusy() && (turns += 1) > MOST_TURNS)
      throw new Error('The world never comes to rest: something goes round in circles without any time passing.')
    still = isBusy() || process.getActiveResourcesInfo().includes('Immediate') ? 0 : still + 1
  }
}
