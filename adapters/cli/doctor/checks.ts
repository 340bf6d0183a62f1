import { createServer } from 'node:net'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import { satisfies } from '../../peers/versions.ts'
import type { CommandError, Io } from '../command.ts'
import { loadAgent } from '../load-agent.ts'
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
  return {
    status: 'wrong',
    what: `Node ${version} is too old: taskchart needs ${range}`,
    mend: 'Install Node 24 from https://nodejs.org'
  }
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
  return {
    status: 'note',
    what: `port ${port} cannot be used (${error.code}). taskchart dev takes the next free one`,
    mend: 'npx taskchart serve AGENT --port 0'
  }
}

/** Whether an agent's module can be loaded. */
export async function agentFinding(file: string, { cwd }: Io): Promise<Finding> {
  try {
    const { agent } = await loadAgent(file, cwd)
    return { status: 'ok', what: `${file} is the agent ${agent.card.name}` }
  } catch (error) {
    const { message, details } = error as CommandError
    return {
      status: 'wrong',
      what: details === '' ? message : `${message}\n${details}`,
      mend: installIn(message) ?? `Correct ${file}, then run: npx taskchart doctor ${file}`
    }
  }
}

/** Runs a check with a signal that aborts with the command's, and once the agent has not answered in time. */
export async function timeLimited<T>(
  { clock, signal }: Pick<Io, 'clock' | 'signal'>,
  check: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const limit = new AbortController()
  const timer = clock.setTimeout(
    () => limit.abort(new Error(`The agent gave no answer within ${ANSWER_MS / 1000} s.`)),
    ANSWER_MS
  )
  return check(AbortSignal.any([signal, limit.signal])).finally(() => clock.clearTimeout(timer))
}

/** Compares the clocks of this machine and of the agent's, by the header Date, which has whole seconds. */
export async function clockFinding(url: string, io: Pick<Io, 'clock' | 'signal'>): Promise<Finding> {
  const { clock } = io
  const sentMs = clock.now()
  const answer = await timeLimited(io, signal =>
    fetch(new URL(AGENT_CARD_PATH, url.replace(/^ws/i, 'http')), { signal })
  ).catch(() => undefined)
  await answer?.body?.cancel()
  const theirsMs = Date.parse(answer?.headers.get('date') ?? '')
  if (Number.isNaN(theirsMs))
    return { status: 'note', what: 'the agent does not say what time it is, so the clocks are not compared' }
  const aheadMs = (sentMs + clock.now()) / 2 - theirsMs
  if (Math.abs(aheadMs) <= MOST_SKEW_MS)
    return { status: 'ok', what: 'the clocks of this machine and of the agent agree' }
  return {
    status: 'wrong',
    what: `this machine's clock is ${lengthText(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} the agent's: offers and tokens expire at the wrong time`,
    mend: 'Synchronise both clocks, for example: timedatectl set-ntp true'
  }
}
