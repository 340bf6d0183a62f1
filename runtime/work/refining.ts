import type { AnyActorLogic, AnyActorRef, PromiseActorLogic, PromiseSnapshot } from 'xstate'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Artifact, Message, Part, Task } from '../../machines/protocol/objects.ts'
import type { ArtifactContent } from '../../machines/task-events.ts'
import {
  type ArtifactChoice,
  artifactChoices,
  REFINING_OPTIONS,
  meantArtifacts,
  artifactNameOf,
  whichArtifact,
  type RefiningOptions,
  type EarlierArtifact
} from '../authoring/artifact-choices.ts'
import { artifactOf } from '../authoring/checked-words.ts'
import type { MessageReceived } from '../authoring/input-schema.ts'
import { inputRequired } from '../authoring/questions.ts'
import { typed } from '../authoring/setup-work.ts'
import { type ArtifactReference, namedArtifacts } from '../authoring/words.ts'
import { type GeneratorArguments, type Step, toolsOf } from '../authoring/work-arguments.ts'
import { taskIdOf, hostOf, actorPathOf } from '../commits/actor-host.ts'
import { checkArgument, checkOptions, functionFor, withMembers } from '../primitives/options.ts'
import { assign, promiseLogic, setup } from '../xstate/library.ts'
import { noteWrittenLogic } from '../xstate/state-nodes.ts'
import { RunJournal, Steps } from './journal.ts'
import { Replay } from './replay.ts'

/** Content of a refinement. It has no name, because it keeps the name of its original. */
export type Refinement = string | Part | Part[] | Omit<ArtifactContent, 'name'>

/** The arguments of work among which an artifact is found. */
type RefiningWork = Pick<GeneratorArguments, 'message' | 'earlierArtifacts' | 'unloadedTasks'> & {
  readonly readTask: ReadTask
}

type ReadTask = (taskId: string) => Promise<Task>

/** A search for an artifact that needs an answer. */
interface Search {
  readonly choices: readonly ArtifactChoice[]
  /** The choices that the answers have left, among which the next question asks. */
  readonly open: readonly ArtifactChoice[]
  /** Whether the last answer did not choose one. */
  readonly isAgain: boolean
}

/** The result of `work.artifactToRefine()`. */
export async function findArtifactToRefine(
  work: GeneratorArguments,
  options: RefiningOptions = {}
): Promise<EarlierArtifact | undefined> {
  checkRefining(options)
  const choices = await work.step(STEP, () => choicesOf(work))
  let found = firstOf(choices, work.message, options)
  while (found && isOpen(found)) {
    const answer: Message = await toolsOf(work).ask(inputRequired(questionAbout(found, options)))
    found = await afterAnswer(found, answer, () => work.step(STEP, () => namedElsewhere(work.readTask, answer)))
  }
  return found && read(work.readTask, found)
}

/**
 * A new version of an artifact. It has the original's name, by which clients know that both are versions of one
 * artifact, and an id of its own. If the original has no name, the name is the original's id.
 */
export function refined(
  earlier: Pick<EarlierArtifact, 'artifact'>,
  content: Refinement
): Omit<Artifact, 'artifactId'> & { artifactId?: string } {
  checkArgument(earlier, withMembers(['artifact'], 'what artifactToRefine gives'), "refined(earlier, 'the new text')")
  const { artifact: original } = earlier
  const { artifactId, ...others } = artifactOf(content)
  const isOwn = artifactId !== undefined && artifactId !== original.artifactId
  return { ...others, name: artifactNameOf(original), ...(isOwn && { artifactId }) }
}

/** Maximum number of unloaded tasks that are read to find artifacts. */
const READ_TASKS = 20

const STEP = 'artifact to refine'

/** Artifacts that may be refined. If no loaded task has one, the newest unloaded tasks are read, one at a time. */
async function choicesOf(work: RefiningWork): Promise<ArtifactChoice[]> {
  const { message, unloadedTasks } = work
  const choices = artifactChoices(work)
  if (choices.length > 0) return choices
  const earlierArtifacts: EarlierArtifact[] = []
  for (const taskId of unloadedTasks.slice(0, READ_TASKS)) {
    const artifacts = await work.readTask(taskId).then(task => task.artifacts ?? [], noArtifactsIfUnreadable)
    for (const artifact of artifacts.toReversed())
      earlierArtifacts.push({ taskId, artifact: { ...artifact, parts: [] } })
  }
  return artifactChoices({ message, earlierArtifacts })
}

/** A task that was removed, or is too large to be read, has no artifacts to refine. */
function noArtifactsIfUnreadable(error: unknown): Artifact[] {
  if (!isA2AError(error) || error.code === 'InternalError') throw error
  return []
}

/** The artifact outside the choices that an answer refers to, if it is the caller's. */
async function namedElsewhere(readTask: ReadTask, answer: Message): Promise<ArtifactReference | undefined> {
  const [reference, ...others] = namedArtifacts(answer)
  if (!reference || others.length > 0) return undefined
  return read(readTask, reference).then(() => reference, ifAbsent)
}

function ifAbsent(error: unknown): undefined {
  if (!isA2AError(error) || error.code !== 'TaskNotFound') throw error
}

async function read(readTask: ReadTask, { taskId, artifactId }: ArtifactReference): Promise<EarlierArtifact> {
  const { artifacts = [] } = await readTask(taskId)
  const artifact = artifacts.find(candidate => candidate.artifactId === artifactId)
  if (!artifact)
    throw new A2AError('TaskNotFound', `Task ${taskId} has no artifact ${artifactId}.`, { metadata: { taskId } })
  return { taskId, artifact }
}

/** Arguments of a promise creator in a work chart: those of XState, and `step`. */
export interface PromiseArguments<Input> {
  readonly input: Input
  readonly self: AnyActorRef
  readonly system: AnyActorRef['system']
  readonly signal: AbortSignal
  readonly step: Step
}

/** `run` identifies one run of the actor within its task, so that a later run does not reuse its steps. */
type RunSnapshot<Output, Input> = PromiseSnapshot<Output, Input> & {
  readonly run: string
  readonly isRestored?: boolean
}

/**
 * XState's `fromPromise` for actors of a work chart, with `step`. When its task is restored, the promise creator runs
 * again with the same input, and finished steps give their stored results.
 */
export function fromPromise<Output, Input = undefined>(
  create: (given: PromiseArguments<Input>) => PromiseLike<Output>
): PromiseActorLogic<Output, Input> {
  checkArgument(create, functionFor('a function that gives a promise'), 'fromPromise(async ({ input, step }) => …)')
  const logic = promiseLogic<Output, Input>(async ({ input, self, system, signal }) => {
    const host = hostOf(system)
    const taskId = taskIdOf(self)
    const { run, isRestored } = self.getSnapshot() as RunSnapshot<Output, Input>
    const log = new RunJournal(taskId, host)
    if (isRestored) log.replayFrom(new Replay({ events: [], journal: await host.readJournal(taskId) }))
    const steps = new Steps(log, `${run}/`, () => signal)
    try {
      return await create({
        input,
        self,
        system,
        signal,
        step: (name, make) => steps.forAuthor(name, steps.run(name, make))
      })
    } finally {
      if (!signal.aborted) steps.end()
    }
  })
  const withSteps: PromiseActorLogic<Output, Input> = {
    ...logic,
    getInitialSnapshot: (scope, input) => {
      const { self, system } = scope
      return {
        ...logic.getInitialSnapshot(scope, input),
        run: `${actorPathOf(self).join('/')}@${hostOf(system).turnNumber}`
      }
    },
    restoreSnapshot: snapshot => ({ ...(snapshot as RunSnapshot<Output, Input>), isRestored: true }),
    getPersistedSnapshot: snapshot => {
      const { isRestored: _, ...persisted } = snapshot as RunSnapshot<Output, Input>
      return persisted
    }
  }
  return noteWrittenLogic(withSteps, create)
}

/** Input of the chart that finds an artifact. */
type RefiningInput = { readonly message?: Message | undefined } | undefined

/** The context of that chart. */
interface RefiningContext {
  readonly message?: Message | undefined
  readonly search?: Search | undefined
  readonly answer?: Message | undefined
  readonly found?: EarlierArtifact | undefined
}

/** One step of a search: its start, or what an answer gives. */
const findArtifact = fromPromise<
  Search | EarlierArtifact | undefined,
  Omit<RefiningContext, 'found'> & { readonly optional: boolean }
>(async ({ input: { message, search, answer, optional }, self, system }) => {
  const host = hostOf(system)
  const taskId = taskIdOf(self)
  const readTask: ReadTask = id => host.readTask(id)
  if (search && answer) {
    const found = await afterAnswer(search, answer, () => namedElsewhere(readTask, answer))
    return isOpen(found) ? found : read(readTask, found)
  }
  const { message: opening, earlierArtifacts, unloadedTasks } = await host.workInput(taskId)
  const meant = message ?? opening
  const choices = await choicesOf({ message: meant, earlierArtifacts, unloadedTasks, readTask })
  const found = firstOf(choices, meant, { optional })
  return found && !isOpen(found) ? read(readTask, found) : found
})

/**
 * Actor logic for statecharts that finds the artifact to refine as `work.artifactToRefine` does, asks the client if
 * several or none may be meant, and outputs the artifact: `invoke: { src: 'artifactToRefine', onDone }`. `message` of
 * its input says which artifact is meant; the default is the message that opened the task.
 */
export function artifactToRefine(
  options?: RefiningOptions & { readonly optional?: false }
): PromiseActorLogic<EarlierArtifact, RefiningInput>
export function artifactToRefine(
  options: RefiningOptions
): PromiseActorLogic<EarlierArtifact | undefined, RefiningInput>
export function artifactToRefine(options: RefiningOptions = {}): AnyActorLogic {
  checkRefining(options)
  const { optional = false } = options
  const logic = setup({
    types: {
      context: typed<RefiningContext>(),
      events: typed<MessageReceived>(),
      input: typed<RefiningInput>(),
      output: typed<EarlierArtifact | undefined>()
    },
    actors: { findArtifact }
  }).createMachine({
    id: 'artifactToRefine',
    context: ({ input }) => ({ message: input?.message }),
    initial: 'finding',
    states: {
      finding: {
        invoke: {
          src: 'findArtifact',
          input: ({ context: { message, search, answer } }) => ({ message, search, answer, optional }),
          onDone: [
            {
              guard: ({ event: { output } }) => isOpen(output),
              target: 'asking',
              actions: assign({ search: ({ event }) => event.output as Search })
            },
            {
              target: 'found',
              actions: assign({ found: ({ event }) => event.output as EarlierArtifact | undefined })
            }
          ]
        }
      },
      asking: {
        tags: 'input-required',
        meta: {
          prompt: ({ context }: { context: RefiningContext }) => questionAbout(context.search as Search, options)
        },
        on: { 'message.received': { target: 'finding', actions: assign({ answer: ({ event }) => event.message }) } }
      },
      found: { type: 'final' }
    },
    output: ({ context: { found } }) => found
  })
  return noteWrittenLogic(logic, options)
}

function checkRefining(options: RefiningOptions): void {
  checkOptions(options, REFINING_OPTIONS, 'artifactToRefine', "artifactToRefine({ what: 'picture' })")
}

/** The beginning of a search: the only choice, or a question; `undefined` if there is nothing and need not be. */
function firstOf(
  choices: readonly ArtifactChoice[],
  message: Message,
  { optional = false }: Pick<RefiningOptions, 'optional'>
): Search | ArtifactReference | undefined {
  const [only, ...others] = choices
  if (only && others.length === 0) return only
  if (!only && optional && namedArtifacts(message).length === 0) return undefined
  return { choices, open: choices, isAgain: false }
}

/**
 * A search after an answer: the artifact that it means, else one that it refers to outside the choices, else the next
 * question.
 */
async function afterAnswer(
  { choices, open }: Search,
  answer: Message,
  elsewhere: () => Promise<ArtifactReference | undefined>
): Promise<Search | ArtifactReference> {
  const meant = [meantArtifacts(open, answer), meantArtifacts(choices, answer)].find(({ length }) => length > 0) ?? []
  const [only, ...others] = meant
  if (only && others.length === 0) return only
  const isAgain = meant.length === 0 || meant.length === open.length
  return (await elsewhere()) ?? { choices, open: only ? meant : open, isAgain }
}

function isOpen(found: Search | object | undefined): found is Search {
  return found !== undefined && 'choices' in found
}

function questionAbout({ open, isAgain }: Search, options: RefiningOptions): ReturnType<typeof whichArtifact> {
  return whichArtifact(open, isAgain, options)
}
