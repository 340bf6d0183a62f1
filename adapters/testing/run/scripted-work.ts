import { emit, type EventObject } from 'xstate'
import { authRequired, inputRequired } from '../../../runtime/authoring/questions.ts'
import { setupWork, type AuthorizationReceived } from '../../../runtime/authoring/setup-work.ts'
import { artifact, failed, progress, rejected, type WorkResult } from '../../../runtime/authoring/words.ts'
import type { WorkArguments, WorkEnd } from '../../../runtime/authoring/work-arguments.ts'
import type { WorkFunction } from '../../../runtime/work/function-work.ts'
import type { Cases } from '../plan/cases.ts'
import type { WorkDouble } from './stub-actors.ts'
import { endless } from './with-actors.ts'

/** What a work as a function or a generator may do, as its tests have it done. */
const ACTS = ['progress', 'artifact', 'chunk', 'ask', 'authorize', 'complete', 'fail', 'reject', 'throw'] as const

type Act = (typeof ACTS)[number]

const SAID = progress('getting on')
const MADE = artifact({ artifactId: 'made', name: 'made.txt', parts: [{ text: 'one' }] })
const MORE = artifact({ artifactId: 'made', parts: [{ text: 'two' }] }, { append: true, lastChunk: true })
const QUESTION = 'And then?'
const PERMISSION = 'May I?'
const RESULT: WorkResult = { artifact: { artifactId: 'result', parts: [{ text: 'done' }] }, message: 'There it is.' }
const FAILURE = 'It did not work out.'
const REFUSAL = 'Not me.'

const ENDS = { complete: 'completed', fail: 'failed', reject: 'rejected', throw: 'broken' } as const

/** The model of a work that is no chart: whatever it may say, ask, and end with. Its author lives as long as it does. */
export const scriptedChart = setupWork({
  types: { events: {} as { readonly type: Act } | AuthorizationReceived },
  actors: { author: endless }
}).createMachine({
  id: 'work',
  initial: 'active',
  states: {
    active: {
      invoke: { src: 'author', id: 'author' },
      initial: 'ready',
      states: {
        ready: { on: { progress: { actions: emit(SAID) }, artifact: { target: 'started', actions: emit(MADE) }, ask: 'asking', authorize: 'authorizing', ...outside(ENDS) } },
        started: { on: { chunk: { target: 'ready', actions: emit(MORE) }, ask: 'asking', ...outside(ENDS) } },
        asking: { tags: 'input-required', meta: { prompt: QUESTION }, on: { 'message.received': 'ready' } },
        authorizing: { tags: 'auth-required', meta: { prompt: PERMISSION }, on: { 'message.received': 'ready', 'authorization.received': 'ready' } }
      }
    },
    completed: { type: 'final' },
    failed: { type: 'final', tags: 'failed', meta: { reason: FAILURE } },
    rejected: { type: 'final', tags: 'rejected', meta: { reason: REFUSAL } },
    broken: { type: 'final', tags: 'failed', meta: { reason: 'The work ended with an error.' } }
  },
  output: RESULT
})

/** The cases of the model: what its author may do is what its events are. */
export const scriptedCases: Pick<Cases, 'events' | 'results'> = {
  events: Object.fromEntries(ACTS.map(type => [type, { type }])),
  results: { author: {} }
}

/** A work as a function that does what it is told. Started again, it does all of it once more, as work that runs again has to. */
export class ScriptedWork implements WorkDouble {
  readonly #acts: Act[] = []
  #hear = nothing

  get work(): WorkFunction {
    return work => this.#run(work)
  }

  tell({ type }: EventObject): void {
    this.#acts.push(type as Act)
    this.#hear()
  }

  // It has no actors of its own, and nothing of it is lost.
  end = nothing
  clear = nothing

  /** What it is told to do as the i-th, as soon as it is told. */
  async #act(i: number): Promise<Act> {
    for (;;) {
      const act = this.#acts[i]
      if (act) return act
      await new Promise<void>(resolve => (this.#hear = resolve))
    }
  }

  async #run({ emit: say, ask }: WorkArguments): Promise<WorkEnd> {
    for (let i = 0; ; i += 1) {
      switch (await this.#act(i)) {
        case 'progress':
          say(SAID)
          break
        case 'artifact':
          say(MADE)
          break
        case 'chunk':
          say(MORE)
          break
        case 'ask':
          await ask(inputRequired(QUESTION))
          break
        case 'authorize':
          await ask(authRequired(PERMISSION))
          break
        case 'complete':
          return RESULT
        case 'fail':
          return failed(FAILURE)
        case 'reject':
          return rejected(REFUSAL)
        case 'throw':
        default:
          throw new Error('It breaks, as its test wants it.')
      }
    }
    /* c8 ignore next -- it ends within the loop */
  }
}

function nothing(): void {}

/** Transitions from a state inside to states outside of the one that it is in. */
function outside<Targets extends Readonly<Record<string, string>>>(targets: Targets): { [Event in keyof Targets]: `#work.${Targets[Event]}` } {
  return Object.fromEntries(Object.entries(targets).map(([event, state]) => [event, `#work.${state}`])) as never
}
