import type { AnyActorRef, PromiseActorLogic, PromiseSnapshot } from 'xstate'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Artifact, Message, Part, Task } from '../../machines/protocol/objects.ts'
import type { ArtifactContent } from '../../machines/task-events.ts'
import {
  type ArtifactChoice,
  artifactChoices,
  ASKING_OPTIONS,
  meantArtifacts,
  artifactNameOf,
  whichArtifact,
  type RefiningOptions,
  type EarlierArtifact
} from '../authoring/artifact-choices.ts'
import { artifactOf } from '../authoring/checked-words.ts'
import { inputRequired } from '../authoring/questions.ts'
import { type ArtifactReference, namedArtifacts } from '../authoring/words.ts'
import type { Step, WorkArguments } from '../authoring/work-arguments.ts'
import { taskIdOf, hostOf, actorPathOf } from '../commits/actor-host.ts'
import {
  checkArgument,
  checkOptions,
  functionFor,
  type OptionKinds,
  TRUE_OR_FALSE,
  withMembers
} from '../primitives/options.ts'
import { promiseLogic } from '../xstate/library.ts'
import { Replay, RunJournal, Steps } from './journal.ts'

const OPTIONS: OptionKinds<RefiningOptions> = { ...ASKING_OPTIONS, optional: TRUE_OR_FALSE }

/** Content of a refinement. It has no name, because it keeps the name of its original. */
export type Refinement = string | Part | Part[] | Omit<ArtifactContent, 'name'>

/** The arguments of work that find the artifact to refine. */
type RefiningWork = Pick<WorkArguments, 'message' | 'earlierArtifacts' | 'unloadedTasks' | 'step' | 'ask' | 'readTask'>

/** What `work.artifactToRefine()` gives. */
export async function artifactToRefine(
  work: RefiningWork,
  options: RefiningOptions = {}
): Promise<EarlierArtifact | undefined> {
  checkOptions(options, OPTIONS, 'artifactToRefine', "work.artifactToRefine({ what: 'picture' })")
  const { optional = false, ...questionOptions } = options
  const choices = await work.step(STEP, () => choicesOf(work))
  if (choices.length === 0 && optional && namedArtifacts(work.message).length === 0) return undefined
  let chosen: ArtifactReference | undefined = choices.length === 1 ? choices[0] : undefined
  let open: readonly ArtifactChoice[] = choices
  let isAgain = false
  while (!chosen) {
    const answer: Message = await work.ask(inputRequired(whichArtifact(open, { ...questionOptions, isAgain })))
    const meant: ArtifactChoice[] =
      [meantArtifacts(open, answer), meantArtifacts(choices, answer)].find(({ length }) => length > 0) ?? []
    chosen = meant.length === 1 ? meant[0] : await namedElsewhere(work, answer)
    isAgain = meant.length === 0 || meant.length === open.length
    if (meant.length > 0) open = meant
  }
  return read(work.readTask, chosen)
}

/**
 * A new version of an artifact. It has the original's name, by which clients know that both are versions of one
 * artifact, and an id of its own. If the original has no name, the name is the original's id.
 */
export function refined(earlier: Pick<EarlierArtifact, 'artifact'>, content: Refinement): ArtifactContent {
  checkArgument(earlier, withMembers(['artifact'], 'what artifactToRefine gives'), "refined(earlier, 'the new text')")
  const { artifact: original } = earlier
  const { artifactId, ...others } = artifactOf(content)
  const isOwn = artifactId !== undefined && artifactId !== original.artifactId
  return { ...others, name: artifactNameOf(original), ...(isOwn && { artifactId }) }
}

/**
 * Actor logic for statecharts: takes a list of exactly one choice, and outputs that artifact:
 * `invoke: { src: 'readArtifact', input: ({ context }) => context.choices, onDone }`.
 */
export const readArtifact: PromiseActorLogic<EarlierArtifact, readonly ArtifactReference[]> = fromPromise(
  async ({ input: [chosen, ...others], system }) => {
    if (!chosen || others.length > 0)
      throw new TypeError('readArtifact takes exactly one choice. Ask with whichArtifact until one is left.')
    return read(taskId => hostOf(system).readTask(taskId), chosen)
  }
)

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
function namedElsewhere(work: RefiningWork, answer: Message): Promise<ArtifactReference | undefined> {
  return work.step(STEP, async () => {
    const [reference, ...others] = namedArtifacts(answer)
    if (!reference || others.length > 0) return undefined
    return read(work.readTask, reference).then(() => reference, ifAbsent)
  })
}

function ifAbsent(error: unknown): undefined {
  if (!isA2AError(error) || error.code !== 'TaskNotFound') throw error
}

async function read(
  readTask: (taskId: string) => Promise<Task>,
  { taskId, artifactId }: ArtifactReference
): Promise<EarlierArtifact> {
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
  return {
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
}
