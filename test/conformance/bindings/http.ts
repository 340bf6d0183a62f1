import type { Test } from 'tap'
import { serve } from '../../../adapters/serve/serve.ts'
import type { Runtime } from '../../../runtime/runtime-options.ts'

/** Serves everything that a port of our own has. Gives its address, without a slash at the end. */
export async function serveHttp(t: Test, runtime: Runtime): Promise<string> {
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  return new URL(served.url).origin
}
