import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Agent } from '../../../runtime/index.ts'
import { replayTask, type ReplayOutcome, type TaskReplay } from '../../../runtime/work-port.ts'
import { HistoryFault, parseHistory } from './history.ts'

/** The outcome of a history with an agent: that of its replay, or `unreadable` for its file. */
export type HistoryOutcome = ReplayOutcome | 'unreadable'

/** The outcome of one file. */
export interface HistoryReplay extends Omit<TaskReplay, 'outcome'> {
  readonly file: string
  readonly outcome: HistoryOutcome
}

/** The outcomes that fail a test. The others may be meant, or are not known. */
const FAILURES: readonly HistoryOutcome[] = ['diverges', 'not restored', 'other answer', 'unreadable']

/** Whether an outcome fails a test. With `isStrict` only `same` passes. */
export function failsTest({ outcome }: HistoryReplay, isStrict = false): boolean {
  return isStrict ? outcome !== 'same' : FAILURES.includes(outcome)
}

/** The files of a folder that may be histories, by name. Throws TypeError if there is no folder, or it has none. */
export async function historyFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((cause: Error) => {
    throw new TypeError(`There is no folder of histories: ${cause.message}.`, { cause })
  })
  const files = names.filter(name => name.endsWith('.json')).toSorted()
  if (files.length === 0)
    throw new TypeError(
      `${folder} has no histories (*.json). Write some: npx taskchart tasks export --db FILE --history ${folder}`
    )
  return files.map(name => join(folder, name))
}

/** Replays the history of a file with an agent. */
export async function replayFile(agent: Agent, file: string): Promise<HistoryReplay> {
  try {
    // A pipe would never end.
    if (!(await stat(file)).isFile()) throw new HistoryFault('is no file')
    const task = parseHistory(await readFile(file, 'utf8'))
    return { file, ...(await replayTask(agent, task)) }
  } catch (error) {
    // Data that nothing has written may fail anywhere, and the other files are replayed nevertheless.
    const isKnown = error instanceof HistoryFault || (error as NodeJS.ErrnoException).code !== undefined
    const { message } = error as Error
    return { file, outcome: 'unreadable', reason: isKnown ? message : `cannot be replayed: ${message}` }
  }
}

/** How many replays run at once: most of them wait for the event loop. */
const AT_ONCE = 8

/** Replays files, and gives their outcomes in the order of the files. */
export async function* replayFiles(
  agent: Agent,
  files: readonly string[]
): AsyncGenerator<HistoryReplay, void, undefined> {
  const running: Promise<HistoryReplay>[] = []
  for (const file of files) {
    running.push(replayFile(agent, file))
    if (running.length === AT_ONCE) yield running.shift() as Promise<HistoryReplay>
  }
  yield* running
}

/** Why a replay is not the same, in one line: `word 2: it was question "Size?", and is now progress "Thinking."`. */
export function differenceText({ reason, difference }: Pick<TaskReplay, 'reason' | 'difference'>): string {
  const sides = difference && `${difference.at}: it was ${difference.was}, and is now ${difference.is}`
  return [reason, sides].filter(text => text !== undefined).join('; ')
}
