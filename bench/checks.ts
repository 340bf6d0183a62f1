import { ARTIFACT_TEXT, CHUNK_TEXT } from './errands.ts'

/**
 * The answer's text if it is a completed task with the artifact. Throws Error otherwise, so that no server wins by
 * refusing.
 */
export function completed(answer: string): string {
  return holding(answer, '"state":"TASK_STATE_COMPLETED"', ARTIFACT_TEXT)
}

/** The answer's text if it is a task that waits for input, of A2A or of MCP. */
export function waiting(answer: string): string {
  return answer.includes('"status":"input_required"') ? answer : holding(answer, '"state":"TASK_STATE_INPUT_REQUIRED"')
}

/** The answer's text if it has the result of the work: what an engine without tasks answers. */
export function resulting(answer: string): string {
  return holding(answer, ARTIFACT_TEXT)
}

/** The id of the task in an answer to SendMessage. */
export function taskIdIn(answer: string): string {
  const { result } = JSON.parse(answer) as { result: { task: { id: string } } }
  return result.task.id
}

/** Looks at the events of one stream: a task, that it works, so many chunks, and its end, each where it belongs. */
export class StreamCheck {
  readonly #chunks: number
  #seen = 0

  constructor(chunks: number) {
    this.#chunks = chunks
  }

  /** How many events there have to be. */
  get events(): number {
    return this.#chunks + 3
  }

  readonly see = (event: string): void => {
    this.#seen += 1
    if (this.#seen === 1) holding(event, '"task":', '"state":"TASK_STATE_SUBMITTED"')
    else if (this.#seen === 2) holding(event, '"statusUpdate":', '"state":"TASK_STATE_WORKING"')
    else if (this.#seen < this.events) holding(event, '"artifactUpdate":', CHUNK_TEXT)
    else holding(event, '"statusUpdate":', '"state":"TASK_STATE_COMPLETED"')
  }

  /** Says how many events there were, once the stream has ended. */
  end(): number {
    if (this.#seen !== this.events)
      throw new Error(`A stream had ${this.#seen} events and should have had ${this.events}.`)
    return this.#seen
  }
}

function holding(text: string, ...needed: string[]): string {
  const missing = needed.find(part => !text.includes(part))
  if (missing !== undefined) throw new Error(`An answer lacks ${missing}: ${text}`)
  return text
}
