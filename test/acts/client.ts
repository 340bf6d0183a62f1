import type { Test } from 'tap'
import { fetchCard } from '../../adapters/client/card/discovery.ts'
import { connect } from '../../adapters/client/connect.ts'
import { collectOddities } from '../../adapters/client/warnings.ts'
import { ERRORS, isA2AError } from '../../machines/protocol/errors.ts'
import { httpReceiver } from '../fixtures/peers/http-receiver.ts'
import { httpAgent, result, type Answer } from '../fixtures/peers/scripted-http.ts'
import { collect, say } from '../fixtures/runtime/runtime-helpers.ts'
import type { ActsTest, Members, Step } from './corpus.ts'
import { faultsOf } from './expectations.ts'

/** Gives the client each answer of a test. Gives what it does not understand as the test expects it. */
export async function runClientSteps(t: Test, { steps }: ActsTest): Promise<readonly string[]> {
  // It reads some answers with warnings, which are no part of this.
  t.teardown(collectOddities().stop)
  const faults = await Promise.all(
    steps.map(async step => faultsOf(step.expect_parsed, await parsed(t, step), step.id))
  )
  return faults.flat()
}

/** What a test of clients says in words alone, beside its steps. */
export const CLIENT_SPECIALS: Readonly<Record<string, (t: Test) => Promise<void>>> = {
  'CLIENT-CAP-001': async t => {
    const { url, script, asked } = await httpAgent(t, { card: { capabilities: { streaming: false } } })
    const message = { messageId: 'm-1', role: 'ROLE_AGENT', parts: [{ text: 'Hello to you.' }], contextId: 'a-context' }
    script(result({ message }))
    const client = await connect(url)
    t.teardown(() => client.close())
    t.strictSame(await collect(client.sendStreamingMessage(say('hello'))), [{ message }])
    t.strictSame(
      asked.map(({ method }) => method),
      ['SendMessage'],
      'an agent that does not stream, as its card says, is not asked to'
    )
  }
}

/** What the client makes of an answer: a value, or an error with the number that it has by JSON-RPC. */
async function parsed(t: Test, { client_response: given }: Step): Promise<unknown> {
  if (!given) throw new Error('A test of clients has an answer for them in each step.')
  try {
    return await READERS[given.operation]?.(t, given.wire_payload)
  } catch (error) {
    if (!isA2AError(error)) throw error
    return { error: { code: ERRORS[error.code].code, message: error.message } }
  }
}

const READERS: Readonly<Record<string, (t: Test, payload: Members) => Promise<unknown>>> = {
  get_agent_card: async (t, card) => {
    const { url } = await httpReceiver(t, (_, response) => response.end(JSON.stringify(card)))
    return fetchCard(url)
  },
  get_extended_agent_card: async (t, card) => (await connected(t, result(card))).getExtendedAgentCard(),
  send_message: async (t, frame) => (await connected(t, underItsId(frame))).sendMessage(say('hello')),
  get_task: async (t, frame) => (await connected(t, underItsId(frame))).getTask({ id: 'a-task' })
}

/** Answers with a response of JSON-RPC, under the id of the request. */
function underItsId(frame: Members): Answer {
  return ({ id }, response) =>
    void response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...frame, id }))
}

/** A client of an agent that gives this answer. */
async function connected(t: Test, answer: Answer) {
  const { url, script } = await httpAgent(t, { card: { capabilities: { streaming: true, extendedAgentCard: true } } })
  script(answer)
  const client = await connect(url)
  t.teardown(() => client.close())
  return client
}
