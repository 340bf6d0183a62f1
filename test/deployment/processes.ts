import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'

/** A process that was started here. */
export interface Running {
  /** Its output so far, for errors. */
  readonly output: () => string
  /** Sends a signal, waits for the end, and gives the exit code. May be called twice. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

const running = new Set<ChildProcess>()
process.on('exit', () => running.forEach(child => child.kill('SIGKILL')))

/** Starts a process in a folder. It ends with this one. */
export function started(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): Running {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  running.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()))
  child.on('error', error => (output += error.message))
  const ended = once(child, 'close').then(([code]) => (running.delete(child), code as number | null))
  return {
    output: () => output,
    stop: (signal = 'SIGTERM') => {
      child.kill(signal)
      return ended
    }
  }
}

/** The status at a URL; 0 without an answer. */
export async function statusAt(url: string): Promise<number> {
  return fetch(url).then(
    async response => (await response.text(), response.status),
    () => 0
  )
}

/** Waits until a URL answers with a status that is wanted. Throws after 20 seconds, with what the processes wrote. */
export async function answers(
  url: string,
  isWanted: (status: number) => boolean,
  processes: readonly Running[]
): Promise<void> {
  let status = 0
  for (const endMs = Date.now() + 20_000; Date.now() < endMs; await pause(50)) {
    status = await statusAt(url)
    if (isWanted(status)) return
  }
  throw new Error(`${url} answered ${status}\n${processes.map(({ output }) => output()).join('\n')}`)
}
