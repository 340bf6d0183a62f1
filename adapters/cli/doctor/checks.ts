import { createServer } from 'node:net'
import { AGENT_CARD_PATH, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import { fetchCard } from '../../client/card/discovery.ts'
import { satisfies } from '../../peers/versions.ts'
import type { CommandError, Io } from '../command.ts'
import { loadAgent } from '../load-agent.ts'
import { aboutKey, withAgent, type AgentPlace } from '../talk/agent-connection.ts'
import { lengthText } from '../text/time-text.ts'
import { installIn, type Finding, type Manifest } from './packages.ts'

/** The port of `serve` and `dev`. */
export const USUAL_PORT = 4242

/** How long the agent may take to answer. */
const ANSWER_MS = 10_000

/** A clock that is further off makes tokens and offers expire at the wrong time. */
const MOST_SKEW_MS = 30_000

export function nodeFinding({ engines: { node: range } }: Manifest, version: string): Finding {
  if (satisfies(version, range)) return { status: 'ok', what: `Node ${version}` }
  return { status: 'wrong', what: `Node ${version} is too old: taskchart needs ${range}`, mend: 'Install Node 24 from https://nodejs.org' }
}

/** Whether the usual port is free on this machine. */
export async function portFinding(port: number): Promise<Finding> {
  const server = createServer()
  const error = await new Promise<NodeJS.ErrnoException | undefined>(settle => {
    server.once('error', settle)
    server.listen(port, '127.0.0.1', () => settle(undefined))
  })
  if (!error) await new Promise(closed => server.close(closed))
  if (!error) return { status: 'ok', what: `port ${port} is free` }
  return { status: 'note', what: `port ${port} cannot be used (${error.code}). taskchart dev takes the next free one`, mend: 'npx taskchart serve AGENT --port 0' }
}

/** Whether an agent's module can be loaded. */
export async function agentFinding(file: string, { cwd }: Io): Promise<Finding> {
  try {
    const { agent } = await loadAgent(file, cwd)
    return { status: 'ok', what: `${file} is the agent ${agent.card.name}` }
  } catch (error) {
    const { message, details } = error as CommandError
    return { status: 'wrong', what: details === '' ? message : `${message}\n${details}`, mend: installIn(message) ?? `Correct ${file}, then run: npx taskchart doctor ${file}` }
  }
}

/** Whether an agent can be reached: its card, its clock, a connection and a first call. */
export async function urlFindings(place: AgentPlace, io: Io): Promise<Finding[]> {
  const { url, access } = place
  try {
    const card = await fetchCard(url, { signal: io.signal, clock: io.clock, ...access })
    const interfaces = card.supportedInterfaces.map(({ protocolBinding, protocolVersion }) => `${protocolBinding === WEBSOCKET_BINDING ? 'WEBSOCKET' : protocolBinding} ${protocolVersion}`)
    return [{ status: 'ok', what: `card of ${card.name}: ${interfaces.join(', ')}` }, await clockFinding(url, io), await callFinding(place, io)]
  } catch (error) {
    io.signal.throwIfAborted()
    const { message } = aboutKey(error, place) as Error
    return [{ status: 'wrong', what: message, mend: keyLine(message, url) ?? 'Start the agent, as with npx taskchart serve agent.ts, or correct the URL' }]
  }
}

/** Whether a connection and a first call succeed. */
async function callFinding(place: AgentPlace, io: Io): Promise<Finding> {
  const { url } = place
  try {
    const binding = await timeLimited(io, signal => withAgent(place, { ...io, signal }, async client => {
      await client.listTasks({ pageSize: 1 }, { signal })
      return client.binding
    }))
    return { status: 'ok', what: `the agent answers over ${binding}` }
  } catch (error) {
    io.signal.throwIfAborted()
    const { message } = error as Error
    return { status: 'wrong', what: message, mend: keyLine(message, url) ?? `npx taskchart card ${url}` }
  }
}

/** The line that gives another key, if an error is about keys. */
function keyLine(message: string, url: string): string | undefined {
  return message.includes('--api-key') ? `npx taskchart doctor ${url} --api-key KEY` : undefined
}

/** Runs a check with a signal that aborts with the command's, and once the agent has not answered in time. */
async function timeLimited<T>({ clock, signal }: Pick<Io, 'clock' | 'signal'>, check: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = new AbortController()
  const timer = clock.setTimeout(() => limit.abort(new Error(`The agent gave no answer within ${ANSWER_MS / 1000} s.`)), ANSWER_MS)
  return check(AbortSignal.any([signal, limit.signal])).finally(() => clock.clearTimeout(timer))
}

/** Compares the clocks of this machine and of the agent's, by the header Date, which has whole seconds. */
export async function clockFinding(url: string, io: Pick<Io, 'clock' | 'signal'>): Promise<Finding> {
  const { clock } = io
  const sentMs = clock.now()
  const answer = await timeLimited(io, signal => fetch(new URL(AGENT_CARD_PATH, url.replace(/^ws/i, 'http')), { signal })).catch(() => undefined)
  await answer?.body?.cancel()
  const theirsMs = Date.parse(answer?.headers.get('date') ?? '')
  if (Number.isNaN(theirsMs)) return { status: 'note', what: 'the agent does not say what time it is, so the clocks are not compared' }
  const aheadMs = (sentMs + clock.now()) / 2 - theirsMs
  if (Math.abs(aheadMs) <= MOST_SKEW_MS) return { status: 'ok', what: 'the clocks of this machine and of the agent agree' }
  return { status: 'wrong', what: `this machine's clock is ${lengthText(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} the agent's: offers and tokens expire at the wrong time`, mend: 'Synchronise both clocks, for example: timedatectl set-ntp true' }
}
