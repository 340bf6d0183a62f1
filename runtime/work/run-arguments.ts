import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { RequestDetails } from '../../machines/protocol/requests.ts'
import type { Question } from '../authoring/questions.ts'
import type { EarlierArtifact, WorkArguments, WorkInput } from '../authoring/work-arguments.ts'

/** Members of the work arguments that the run provides. */
export type WorkTools = Omit<WorkArguments, keyof WorkInput>

/** Arguments of a work function: its input, and the tools of its run, each bound when the work reads it. */
export class RunArguments implements WorkArguments {
  readonly taskId: string
  readonly contextId: string
  readonly message: Message
  readonly request: RequestDetails
  readonly input: unknown
  readonly terms: Record<string, unknown> | undefined
  readonly extensions: readonly string[]
  readonly referenceTasks: Task[]
  readonly unloadedTasks: readonly string[]
  readonly earlierArtifacts: EarlierArtifact[]
  readonly #tools: WorkTools

  constructor(
    {
      taskId,
      contextId,
      message,
      request,
      input,
      terms,
      extensions,
      referenceTasks,
      unloadedTasks,
      earlierArtifacts
    }: WorkInput,
    tools: WorkTools
  ) {
    this.taskId = taskId
    this.contextId = contextId
    this.message = message
    this.request = request
    this.input = input
    this.terms = terms
    this.extensions = extensions
    this.referenceTasks = referenceTasks
    this.unloadedTasks = unloadedTasks
    this.earlierArtifacts = earlierArtifacts
    this.#tools = tools
  }

  get signal(): WorkArguments['signal'] {
    return this.#tools.signal
  }

  get emit(): WorkArguments['emit'] {
    return words => this.#tools.emit(words)
  }

  get ask(): WorkArguments['ask'] {
    return <Answer>(question: Question<Answer>) => this.#tools.ask(question)
  }

  get lastAnswer(): WorkArguments['lastAnswer'] {
    return () => this.#tools.lastAnswer()
  }

  get step(): WorkArguments['step'] {
    return (name, run) => this.#tools.step(name, run)
  }

  get owner(): WorkArguments['owner'] {
    return this.#tools.owner
  }

  get readTask(): WorkArguments['readTask'] {
    return taskId => this.#tools.readTask(taskId)
  }

  get completed(): WorkArguments['completed'] {
    return task => this.#tools.completed(task)
  }

  get history(): WorkArguments['history'] {
    return limit => this.#tools.history(limit)
  }

  get sleep(): WorkArguments['sleep'] {
    return ms => this.#tools.sleep(ms)
  }

  get spawn(): WorkArguments['spawn'] {
    return (logic, options) => this.#tools.spawn(logic, options)
  }
}
