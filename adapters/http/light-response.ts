import { getRequestListener } from '@hono/node-server'

/**
 * Hono's Response, which its server sends without making one of Node's of it: with Node's own a request takes a fifth
 * longer. Hono would put it in the place of the global one. That is not for a library to do, so the global ones are put back.
 */
export const LightResponse = lightResponse()

function lightResponse(): typeof Response {
  const { Request: request, Response: response } = Object.getOwnPropertyDescriptors(globalThis)
  getRequestListener(nobody, { overrideGlobalObjects: true })
  const light = globalThis.Response
  Object.defineProperties(globalThis, { Request: request, Response: response })
  return light
}

/* c8 ignore start -- the listener is made for what that does, and never asked */
function nobody(): Response {
  return new Response()
}
/* c8 ignore stop */
