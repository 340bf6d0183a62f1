import type { ErrorCode } from '../../../machines/protocol/errors.ts'
import type { BindingTest } from '../binding-test.ts'
import { objectMembersOf, outcomeText, actualErrorText } from '../requirements/needs.ts'
import type { SubjectUnderTest } from '../subject-under-test.ts'

/** Requests an unknown task with each operation. */
export async function askForUnknownTasks({ trial, text }: SubjectUnderTest, wanted: ErrorCode): Promise<void> {
  const id = crypto.randomUUID()
  const message = { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], taskId: id } }
  await trial.refused(65, wanted, 'GetTask', { id })
  await trial.refused(77, wanted, 'CancelTask', { id })
  await trial.refused(29, wanted, 'SendMessage', message)
  if (!trial.options.card.streaming) return
  await trial.refused(60, wanted, 'SubscribeToTask', { id })
  await trial.refused(52, wanted, 'SendStreamingMessage', message)
}

/** Uses capabilities that the card does not offer (§3.3.4). */
export async function useWhatIsNotOffered({ trial, text }: SubjectUnderTest): Promise<void> {
  const { card } = trial.options
  if (!card.streaming) {
    await trial.refused(49, 'UnsupportedOperation', 'SendStreamingMessage', opening(text))
    await trial.refused(49, 'UnsupportedOperation', 'SubscribeToTask', { id: crypto.randomUUID() })
  }
  if (!card.extendedAgentCard) await trial.refused(121, 'UnsupportedOperation', 'GetExtendedAgentCard', {})
}

/** Sends invalid messages (§5.7), one of an unsupported media type (§3.3.2), and one with unknown fields. */
export async function sendBadRequests({ trial, text }: SubjectUnderTest, wanted: ErrorCode): Promise<void> {
  const { message } = opening(text)
  const noParts = await trial.refused(7, wanted, 'SendMessage', atOnce({ ...message, parts: [] }))
  if (noParts)
    trial.check(
      99,
      /part/i.test(noParts.message) || noParts.fields.some(field => String(field).includes('parts')),
      'a refusal that names parts',
      actualErrorText(noParts),
      false
    )
  const { messageId: _, ...nameless } = message
  const noId = await trial.refused(6, wanted, 'SendMessage', atOnce(nameless))
  for (const refusal of [noParts, noId]) if (refusal) trial.check(99, true, '', undefined)
  if (noId)
    trial.check(
      6,
      /message_?id/i.test(noId.message) || noId.fields.some(field => String(field).includes('messageId')),
      'a refusal that names messageId',
      actualErrorText(noId),
      false
    )
  if (!trial.options.card.inputModes.some(mode => mode.includes('*'))) {
    trial.options.ledger.learn('modes')
    await trial.refused(
      28,
      'ContentTypeNotSupported',
      'SendMessage',
      atOnce({ ...message, messageId: crypto.randomUUID(), parts: [{ raw: 'AAAA', mediaType: NO_TYPE }] })
    )
  }
  trial.opens()
  const more = {
    ...atOnce({ ...message, messageId: crypto.randomUUID(), parts: [{ text, [UNKNOWN]: 1 }], [UNKNOWN]: {} }),
    [UNKNOWN]: []
  }
  const outcome = await trial.ask([8], 'SendMessage', more)
  trial.check(
    8,
    !('refusal' in outcome && outcome.refusal.code === 'InvalidParams'),
    'no refusal for fields that are not known',
    outcomeText(outcome)
  )
}

/** A media type that no agent supports. */
const NO_TYPE = 'application/x-taskchart-test'

/** An unknown field. */
const UNKNOWN = 'taskchartTest'

/** Sends invalid envelopes, on bindings that have them (§9.5). */
export async function sendBadEnvelopes({ trial }: SubjectUnderTest): Promise<void> {
  const codes = [
    ['{"jsonrpc"', -32700],
    ['{"id":1,"method":"GetTask","params":{"id":"none"}}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"Get/Nothing","params":{}}', -32601],
    ['{"jsonrpc":"2.0","id":"two","method":"GetTask","params":{}}', -32602]
  ] as const
  for (const [text, code] of codes) {
    const answer = await trial.raw([17], text)
    if (!answer) return
    const error = objectMembersOf(answer.error)
    trial.check(17, error.code === code, `the error ${code}`, answer)
    if (code === -32700)
      trial.check(
        14,
        answer.jsonrpc === '2.0' && answer.id === null,
        'jsonrpc "2.0", and id null where the request has none that could be read',
        answer
      )
  }
}

/** Versions of A2A (§3.6): an unknown one, none, and one with a patch number. */
export async function nameVersions({ trial }: SubjectUnderTest, wanted: ErrorCode): Promise<void> {
  await trial.refused(104, wanted, 'ListTasks', {}, { version: '99.0' })
  if (trial.options.isOnly10) {
    trial.options.ledger.learn('one')
    await trial.refused(105, wanted, 'ListTasks', {}, { version: '' })
  }
  const usual = await trial.ask([], 'ListTasks', { pageSize: 1 })
  if ('refusal' in usual) return
  const patched = await trial.ask([107], 'ListTasks', { pageSize: 1 }, { version: '1.0.7' })
  trial.check(107, 'result' in patched, 'to be served as 1.0, for 1.0.7', outcomeText(patched))
}

/** Extensions: an unknown one, those of the card, and none although one is required (§3.3.4, §4.6). */
export async function nameExtensions({ trial, text }: SubjectUnderTest): Promise<void> {
  const {
    card: { extensions, requiredExtensions },
    ledger
  } = trial.options
  const usual = await trial.ask([], 'ListTasks', { pageSize: 1 })
  const unknown = await trial.ask(
    [111],
    'ListTasks',
    { pageSize: 1 },
    { extensions: [...requiredExtensions, 'urn:taskchart:test:unknown'] }
  )
  trial.check(
    111,
    'refusal' in usual || 'result' in unknown,
    'no refusal for an extension that is not known',
    outcomeText(unknown)
  )
  if (requiredExtensions.length > 0) {
    ledger.learn('requiredExtension')
    await trial.refused(110, 'ExtensionSupportRequired', 'SendMessage', opening(text), { extensions: [] })
  }
  if (extensions.length === 0) return
  ledger.learn('extension')
  trial.opens()
  const outcome = await trial.ask([], 'SendMessage', opening(text), { extensions })
  if (!('result' in outcome)) return
  const named = outcome.extensions.split(',').map(name => name.trim())
  trial.check(
    112,
    extensions.some(uri => named.includes(uri)),
    `A2A-Extensions: some of ${extensions.join(', ')}`,
    outcome.extensions
  )
}

/** The extended card, if there is one: for authenticated callers only (§13.3). */
export async function askForExtendedCard({ trial }: SubjectUnderTest): Promise<void> {
  const { card, isKnown } = trial.options
  if (!card.extendedAgentCard) return
  const unknown = await trial.ask([123], 'GetExtendedAgentCard', {}, { credentials: '' })
  if (trial.binding !== 'WEBSOCKET' || !isKnown) {
    trial.check(
      123,
      'refusal' in unknown,
      'a refusal for a caller without credentials',
      'result' in unknown && unknown.result
    )
  }
  if (!isKnown) return
  trial.options.ledger.learn('key')
  const known = await trial.ask([122], 'GetExtendedAgentCard', {})
  const code = 'refusal' in known ? known.refusal.code : undefined
  trial.check(
    122,
    'result' in known || code === 'ExtendedAgentCardNotConfigured' || code === 'Forbidden',
    'a card, or ExtendedAgentCardNotConfigured',
    outcomeText(known)
  )
}

/** A call without credentials, if the card requires them (§7.4). Over WebSocket they belong to the handshake. */
export async function showNoCredentials({ trial }: SubjectUnderTest): Promise<void> {
  if (!trial.options.card.wantsCredentials || trial.binding === 'WEBSOCKET') return
  trial.options.ledger.learn('credentials')
  const outcome = await trial.ask([100], 'ListTasks', {}, { credentials: '' })
  const { native = '', code } = 'refusal' in outcome ? outcome.refusal : {}
  trial.check(
    100,
    code === 'Unauthenticated' || code === 'Forbidden' || /^(?:40[13]|UNAUTHENTICATED|PERMISSION_DENIED)/.test(native),
    'HTTP 401 or 403',
    outcomeText(outcome)
  )
}

/** Invalid parameters of lists (§3.1.4). */
export async function listBadly({ trial }: SubjectUnderTest, wanted: ErrorCode): Promise<void> {
  for (const pageSize of [0, -1, 101]) await trial.refused(74, wanted, 'ListTasks', { pageSize })
  await badList(trial, 'historyLength', -1, wanted)
  await badList(trial, 'status', 'TASK_STATE_LOST', wanted)
  await badList(trial, 'pageToken', 'no token of yours', wanted)
}

async function badList(trial: BindingTest, field: string, value: unknown, wanted: ErrorCode): Promise<void> {
  const refusal = await trial.refused(75, wanted, 'ListTasks', { [field]: value })
  if (!refusal) return
  const words = `${refusal.message} ${refusal.fields.join(' ')}`.toLowerCase().replaceAll(/[_ ]/g, '')
  trial.check(75, words.includes(field.toLowerCase()), `a refusal that names ${field}`, actualErrorText(refusal), false)
}

function opening(text: string) {
  return {
    message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] as object[] },
    configuration: { returnImmediately: true }
  }
}

function atOnce(message: object) {
  return { message, configuration: { returnImmediately: true } }
}
