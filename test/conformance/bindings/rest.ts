import { restCaller } from '../../../adapters/conformance/callers/http-callers.ts'
import type { Binding } from '../binding.ts'
import { serveHttp } from './http.ts'

/** REST (§11). */
export const rest: Binding = {
  name: 'REST',
  version: '1.0',
  serve: serveHttp,
  open: async (_, address, terms) => restCaller(address, { version: '1.0', ...terms })
}
