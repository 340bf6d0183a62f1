import { isInterrupted, isTerminal, stateText } from '../../../machines/protocol/states.ts'
import { textOf } from '../../../runtime/index.ts'
import { type Logger, redactedText } from '../../../runtime/ports/logger.ts'
import { isOpeningMessage, type Commit } from '../../../runtime/store/store.ts'
import type { Observer } from '../../../runtime/telemetry-port.ts'
import type { Output } from '../command.ts'
import { paintState } from '../text/format.ts'
import { oneLine, plain } from '../text/terminal.ts'

/** The most tasks that are known at a time. Beyond that the oldest ones have a line without a title. */
const MOST_TASKS = 10_000

/** The maximum length of a task's title. */
const LONGEST_TITLE = 60

interface KnownTask {
  readonly openedMs: number
  readonly title: string
}

interface TaskLogParts {
  readonly stderr: Output
  readonly hasColours: boolean
  /** With `json`, lines are entries of the logger, and errors are left to the runtime, which logs them. */
  readonly log: string
  readonly logger: Logger
  /** An error of the author's code as text. */
  readonly errorText: (error: unknown) => string
  /** Called with the text of each such error. */
  readonly crashed: (taskId: string, text: string) => void
}

/** Logs each task in one line when it ends or waits for its client, and each error of the author's code. */
export class ConsoleTaskLog implements Observer {
  readonly #parts: TaskLogParts
  readonly #known = new Map<string, KnownTask>()

  constructor(parts: TaskLogParts) {
    this.#parts = parts
  }

  committed({ atMs, tasks, log }: Commit): void {
    for (const entry of log) {
      if (isOpeningMessage(entry)) this.#open(entry.taskId, atMs, redactedText(oneLine(textOf(entry.message))))
    }
    for (const { taskId, state } of tasks) {
      // A task has a row in each commit that changes it; it rests only once in each of these states.
      if (
        !isTerminal(state) &&
        !(
          isInterrupted(state) &&
          log.some(entry => 'update' in entry && entry.taskId === taskId && 'statusUpdate' in entry.update)
        )
      )
        continue
      this.#print(taskId, stateText(state), atMs)
      if (isTerminal(state)) this.#known.delete(taskId)
    }
  }

  crashed(taskId: string, error: unknown): void {
    const { stderr, log, errorText, crashed } = this.#parts
    const text = errorText(error)
    if (log !== 'json')
      stderr.write(`The work of task ${oneLine(taskId)} ended with an error:\n${plain(text).replaceAll(/^/gm, '  ')}\n`)
    crashed(taskId, text)
  }

  #open(taskId: string, openedMs: number, title: string): void {
    this.#known.set(taskId, {
      openedMs,
      title: title.length > LONGEST_TITLE ? `${title.slice(0, LONGEST_TITLE)}…` : title
    })
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MOST_TASKS) break
      this.#known.delete(oldest)
    }
  }

  #print(taskId: string, state: string, atMs: number): void {
    const { stderr, hasColours, log, logger } = this.#parts
    const { openedMs, title = '' } = this.#known.get(taskId) ?? {}
    const afterMs = openedMs === undefined ? undefined : atMs - openedMs
    if (log === 'json')
      return logger.info?.('a task has ended, or waits for its client', {
        taskId,
        state,
        ...(afterMs !== undefined && { afterMs })
      })
    const after = afterMs === undefined ? '' : ` after ${(afterMs / 1000).toFixed(1)} s`
    stderr.write(
      `${paintState(hasColours, `${state}${after}${title === '' ? '' : `: ${title}`} (task ${oneLine(taskId)})`)}\n`
    )
  }
}
