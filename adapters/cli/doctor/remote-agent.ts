import type { AgentCard } from '../../../machines/protocol/card.ts'
import { isA2AError, type A2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import { stateText } from '../../../machines/protocol/states.ts'
import { WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import type { AgentClient, CallOptions } from '../../client/agent-client.ts'
import { fetchCard } from '../../client/card/discovery.ts'
import { collectOddities } from '../../client/warnings.ts'
import { EXIT, type Io } from '../command.ts'
import { aboutKey, connectTo, withAgent, type AgentPlace } from '../talk/agent-connection.ts'
import { exitStatus, note, nothingYet } from '../talk/follow.ts'
import { messageText } from '../talk/results.ts'
import { oneLine } from '../text/terminal.ts'
import { clockFinding, type DoctorFinding, installIn, timeLimited } from './checks.ts'

/** An agent to look at, and the text to send if there is one. */
export interface Examined extends Pick<AgentPlace, 'url' | 'access'> {
  readonly text: string | undefined
}

/**
 * Whether an agent can be used, and what is odd about it: its card, its clock, and calls that change nothing. With a
 * text, one message is sent.
 */
export async function* urlFindings(examined: Examined, io: Io): AsyncGenerator<DoctorFinding, void, undefined> {
  const oddities = collectOddities()
  const odd = (of: string) => oddFindings(of, oddities.take())
  try {
    const card = await readCard(examined, io)
    if ('status' in card) {
      yield card
      return
    }
    const interfaces = card.supportedInterfaces.map(
      ({ protocolBinding, protocolVersion }) =>
        `${protocolBinding === WEBSOCKET_BINDING ? 'WEBSOCKET' : protocolBinding} ${protocolVersion}`
    )
    yield { status: 'ok', what: `card of ${card.name}: ${interfaces.join(', ')}` }
    yield* odd('the card')
    if (!card.capabilities.streaming)
      yield {
        status: 'note',
        what: 'the card does not say that the agent streams: the client copes with SendMessage and GetTask'
      }
    yield await clockFinding(examined.url, io)
    const { isReached, findings } = await callFindings(examined, card, io)
    yield* findings
    yield* odd('answers')
    const { text } = examined
    if (text === undefined || !isReached) return
    yield await messageFinding({ ...examined, text }, io)
    yield* odd('the answer to the message')
  } finally {
    oddities.stop()
  }
}

function* oddFindings(of: string, oddities: readonly string[]): Generator<DoctorFinding, void, undefined> {
  if (oddities.length > 0)
    yield {
      status: 'note',
      what: [`odd in ${of}, and how the client reads it:`, ...oddities.map(oddity => `  ${oneLine(oddity)}`)].join('\n')
    }
}

async function readCard(place: Examined, { signal, clock }: Io): Promise<AgentCard | DoctorFinding> {
  const { url, access } = place
  try {
    return await fetchCard(url, { signal, clock, ...access })
  } catch (error) {
    signal.throwIfAborted()
    const isUnread = isA2AError(error) && error.code === 'InvalidAgentResponse'
    return failureFinding(
      error,
      place,
      isUnread
        ? 'Tell whoever runs the agent: the client needs this of its card'
        : 'Start the agent, as with npx taskchart serve agent.ts, or correct the URL'
    )
  }
}

/** A call that changes nothing. */
interface Probe {
  readonly method: string
  readonly call: (client: AgentClient, options: CallOptions) => Promise<unknown>
  /** The finding about its error, or about its success; `undefined` if the outcome is right. */
  readonly judge: (error: A2AError | undefined) => DoctorFinding | undefined
}

const PROBES: readonly Probe[] = [
  {
    method: 'GetTask',
    call: async (client, options) => client.getTask({ id: crypto.randomUUID(), historyLength: 0 }, options),
    judge: judgeUnknown
  },
  { method: 'ListTasks', call: async (client, options) => client.listTasks({ pageSize: 1 }, options), judge: judgeList }
]
const EXTENDED_CARD: Probe = {
  method: 'GetExtendedAgentCard',
  call: async (client, options) => client.getExtendedAgentCard({}, options),
  judge: error =>
    error && {
      status: 'note',
      what: `the card says that there is an extended card, and GetExtendedAgentCard fails: ${error.message}\nThe client copes with the public card`
    }
}

/** Judges GetTask for an id that nobody has. */
function judgeUnknown(error: A2AError | undefined): DoctorFinding | undefined {
  if (!error)
    return {
      status: 'note',
      what: 'GetTask gives a task for an id that nobody has.\nThe client copes: it takes the task as it is'
    }
  if (error.code === 'TaskNotFound') return undefined
  if (isUnsupported(error))
    return {
      status: 'wrong',
      what: `GetTask fails: ${error.message}\nThe client can follow a task only while its stream lasts`
    }
  return {
    status: 'note',
    what: `GetTask for an id that nobody has fails, but not with TaskNotFound (-32001): ${error.message}\nThe client copes: it passes the error on`
  }
}

function judgeList(error: A2AError | undefined): DoctorFinding | undefined {
  if (!error) return undefined
  const what = `ListTasks fails: ${error.message}\nThe client`
  if (isUnsupported(error)) return { status: 'note', what: `${what} copes, but cannot open an earlier conversation` }
  return { status: 'wrong', what: `${what} cannot open an earlier conversation` }
}

/** Whether an agent does not have a method. */
function isUnsupported({ code }: A2AError): boolean {
  return code === 'MethodNotFound' || code === 'UnsupportedOperation'
}

/** Errors that are not about the method. The extended card may need a key of its own. */
const UNREACHED: readonly ErrorCode[] = ['Unauthenticated', 'Forbidden', 'Overloaded', 'RateLimited']

/**
 * Whether a connection and calls succeed, and what is odd about them. The first call that does not reach the agent is
 * the last.
 */
async function callFindings(
  place: Examined,
  { capabilities }: AgentCard,
  io: Io
): Promise<{ readonly isReached: boolean; readonly findings: readonly DoctorFinding[] }> {
  const answered: string[] = []
  const judged: DoctorFinding[] = []
  try {
    const client = await timeLimited(io, async signal => connectTo({ ...place, giveUpAfterMs: 0 }, { ...io, signal }))
    try {
      for (const { method, call, judge } of capabilities.extendedAgentCard ? [...PROBES, EXTENDED_CARD] : PROBES) {
        const error = await timeLimited(io, async signal => call(client, { signal })).then(() => undefined, answerError)
        if (error && UNREACHED.includes(error.code) && method !== EXTENDED_CARD.method) throw error
        const finding = judge(error)
        if (finding) judged.push(finding)
        else answered.push(method)
      }
    } finally {
      await client.close()
    }
    const named = answered.length > 0 ? `: ${answered.join(', ')}` : ''
    return {
      isReached: true,
      findings: [{ status: 'ok', what: `the agent answers over ${client.binding}${named}` }, ...judged]
    }
  } catch (error) {
    io.signal.throwIfAborted()
    return { isReached: false, findings: [failureFinding(error, place, `npx taskchart card ${place.url}`)] }
  }
}

/** The error that an agent answered with. Throws any other. */
function answerError(error: unknown): A2AError {
  if (isA2AError(error)) return error
  throw error
}

/** Sends one message as `taskchart send` does, and follows its task to its end or its question. */
async function messageFinding(
  { url, access, text }: Examined & { readonly text: string },
  io: Io
): Promise<DoctorFinding> {
  const { signal } = io
  const watched = nothingYet()
  let events = 0
  try {
    await withAgent({ url, access }, io, async client => {
      for await (const event of client.sendStreamingMessage(
        { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] } },
        { signal }
      )) {
        note(watched, event)
        events += 1
      }
    })
  } catch (error) {
    signal.throwIfAborted()
    return {
      ...failureFinding(error, { url, access }),
      what: `the message failed after ${countText(events)}: ${(error as Error).message}`
    }
  }
  const { task, message, question = message } = watched
  const answer = task ? `task ${oneLine(task.id)}, which is ${stateText(task.state)}` : 'a message'
  const questionText = question ? `: ${oneLine(messageText(question))}` : ''
  return {
    status: exitStatus(task?.state) === EXIT.unsuccessful ? 'wrong' : 'ok',
    what: `the message was answered with ${answer} (${countText(events)})${questionText}`
  }
}

function countText(events: number): string {
  return events === 1 ? '1 event' : `${events} events`
}

/** The finding for an error, with the line that gives another key if it is about keys. */
function failureFinding(error: unknown, place: Pick<Examined, 'url' | 'access'>, otherwise?: string): DoctorFinding {
  const { message } = aboutKey(error, place) as Error
  const mend = message.includes('--api-key')
    ? `npx taskchart doctor ${place.url} --api-key KEY`
    : (installIn(message) ?? otherwise)
  return { status: 'wrong', what: message, ...(mend !== undefined && { mend }) }
}
