import { setFlagsFromString } from 'node:v8'
import { getRequestListener } from '@hono/node-server'

/** Tunes a process of our own, for what counts for the whole of a process and is not for a library to decide. */
export function tuneProcess(): void {
  // V8 guesses how long objects live by the first that it sees, which here are many at once, and then puts all actors among
  // the long-lived ones: about a fifth more work for each task.
  setFlagsFromString('--no-allocation-site-pretenuring')
  // Hono's server has a Request and a Response that are made without those of Node, which it puts in their places.
  getRequestListener(nobody, { overrideGlobalObjects: true })
}

/* c8 ignore start -- the listener is made for what that does, and never asked */
function nobody(): Response {
  return new Response()
}
/* c8 ignore stop */
