import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import type { Scale } from './scale.ts'
import { short, whole } from './tables.ts'

const PACKAGES = ['xstate', 'ws', '@a2a-js/sdk', 'express']

/**
 * On what, with what and how much was measured, as a Markdown list. Take it before the run, for the machine's own load.
 */
export function surroundings(
  { requestRounds, requests, rounds, warmUps, memoryRounds, waitingTasks }: Scale,
  node: string
): string {
  const versions = PACKAGES.map(name => `${name} ${versionIn(`node_modules/${name}/package.json`)}`)
  return [
    `- ${today()}, taskchart ${versionIn('package.json')}, ${versions.join(', ')}`,
    `- ${machineOf(node)}`,
    `- ${requestRounds} rounds in turns after ${whole(warmUps)} requests of warm-up, ${whole(requests)} requests a round; ${rounds} rounds of chunks and floods`,
    `- memory: ${memoryRounds} times ${whole(waitingTasks)} tasks, each in a fresh process`
  ].join('\n')
}

/** Today's date: `2026-02-03`. */
export function today(): string {
  return new Date().toISOString().slice(0, 10)
}

/** The Nodes of servers and load, and the machine with its load now. */
export function machineOf(node: string): string {
  const [before = NaN] = loadavg()
  return `servers on Node ${versionOf(node)}, load from Node ${process.versions.node}, ${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown CPU'}, load average before the run ${short(before)}`
}

function versionOf(node: string): string {
  return execFileSync(node, ['--print', 'process.versions.node'], { encoding: 'utf8' }).trim()
}

function versionIn(path: string): string {
  const { version } = JSON.parse(readFileSync(path, 'utf8')) as { version: string }
  return version
}
