import type { Test } from 'tap'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import { httpReceiver, type Got } from '../fixtures/peers/http-receiver.ts'
import { open } from '../fixtures/runtime/runtime-helpers.ts'
import { TOKENS, type BindingName, type Site } from './agent.ts'
import type { RawRequest } from './corpus.ts'
import type { RawAnswer, Target } from './runner.ts'

/** A target that is an agent of taskchart. */
export interface ServedTarget extends Target {
  readonly site: Site
  readonly binding: BindingName
  /** What came to the webhook of the test. */
  readonly got: readonly Got[]
}

/** An agent that is served, on one of its bindings, for one test. */
export async function targetOf(t: Test, site: Site, binding: BindingName): Promise<ServedTarget> {
  const { url, got } = await httpReceiver(t)
  const foreign = await open(site.runtime, 'tck-complete-task', {}, { principal: TOKENS.other })
  return {
    site,
    binding,
    got,
    caller: site.open(t, binding),
    card: async () => (await fetch(new URL(AGENT_CARD_PATH, site.url))).json(),
    raw: request => sendRaw(site.addressOf(binding), request),
    variables: { webhookUrl: url, insufficientAuthToken: TOKENS.insufficient, otherUserTaskId: foreign.id },
    goOn: site.goOn
  }
}

/** Sends a request as it is. Reads the answer as JSON, or as a stream of server-sent events to its end. */
export async function sendRaw(
  address: string,
  { method, path, headers, body, body_raw: text }: RawRequest
): Promise<RawAnswer> {
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(address.replace(/\/$/, '') + path, {
    method,
    headers,
    ...(sent !== undefined && { body: sent })
  })
  const answer = await response.text()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const events = Array.from(
    isStream ? answer.matchAll(/^data: ?(.*)$/gm) : [],
    ([, data = '']) => JSON.parse(data) as unknown
  )
  return { status: response.status, body: isStream ? undefined : JSON.parse(answer), events }
}
