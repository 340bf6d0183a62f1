import type { Test } from 'tap'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { Runtime } from '../../../runtime/runtime.ts'
import { serve } from '../../../adapters/http/serve.ts'

/** Serves everything that a port of our own has. Gives its address, without a slash at the end. */
export async function serveHttp(t: Test, runtime: Runtime): Promise<string> {
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  return new URL(served.url).origin
}

/** An answer over HTTP: JSON, or a stream of what its events hold. */
export interface HttpAnswer {
  readonly response: Response
  readonly json?: unknown
  /** The next event's data; `undefined` at the end. */
  readonly next?: () => Promise<unknown>
}

/** Asks, and reads the answer as far as its media type says what it is. */
export async function exchange(url: string, init: RequestInit): Promise<HttpAnswer> {
  const response = await fetch(url, init)
  const isStream = response.headers.get('content-type') === 'text/event-stream'
  if (!isStream || !response.body) return { response, json: JSON.parse((await response.text()) || 'null') }
  const reader = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()).getReader()
  const next = async () => {
    const { done, value } = await reader.read()
    return done ? undefined : (JSON.parse(value.data) as unknown)
  }
  return { response, next }
}
