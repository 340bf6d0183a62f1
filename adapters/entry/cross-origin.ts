import { LightResponse } from './answers.ts'

/** Headers that a page may read beside the usual ones. */
const EXPOSED = 'A2A-Extensions, X-A2A-Extensions, ETag, Retry-After, WWW-Authenticate'

/** Lets the page of an origin that got in read the answer. */
export function crossOrigin(origin: string | undefined): Record<string, string> {
  return origin === undefined ? {} : { 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': EXPOSED, Vary: 'Origin' }
}

/** Answers a browser that asks whether a page may send a request. Credentials go in headers, never in cookies. */
export function preflight(origin: string | undefined, { headers }: Request): Response {
  return new LightResponse(null, {
    status: 204,
    headers: {
      Allow: 'GET, HEAD, POST, DELETE, OPTIONS',
      ...crossOrigin(origin),
      ...(origin !== undefined && {
        'Access-Control-Allow-Methods': 'GET, POST, DELETE',
        'Access-Control-Allow-Headers': headers.get('access-control-request-headers') ?? 'content-type',
        'Access-Control-Max-Age': '600'
      })
    }
  })
}
