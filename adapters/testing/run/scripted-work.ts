import type { EventObject } from 'xstate'
import {
  type WorkFunction,
  authRequired,
  inputRequired,
  setupWork,
  type AuthorizationReceived,
  type WorkArguments,
  artifact,
  failed,
  progress,
  rejected,
  type WorkResult
} from '../../../runtime/index.ts'
import { emit, type WorkEnd } from '../../../runtime/work-port.ts'
import type { Cases } from '../plan/cases.ts'
import { endless, type WorkDouble } from './stub-actors.ts'

/** The actions of a work function or generator in tests. */
const ACTS = ['progress', 'artifact', 'chunk', 'ask', 'authorize', 'complete', 'fail', 'reject', 'throw'] as const

type Act = (typeof ACTS)[number]

const PROGRESS = progress('getting on')
const MADE = artifact({ artifactId: 'made', name: 'made.txt', parts: [{ text: 'one' }] })
const MORE = artifact({ artifactId: 'made', parts: [{ text: 'two' }] }, { append: true, lastChunk: true })
const QUESTION = 'And then?'
const PERMISSION = 'May I?'
const RESULT: WorkResult = { artifact: { artifactId: 'result', parts: [{ text: 'done' }] }, message: 'There it is.' }
const FAILURE = 'It did not work out.'
const REFUSAL = 'Not me.'

const ENDS = { complete: 'completed', fail: 'failed', reject: 'rejected', throw: 'broken' } as const

/**
 * A model of work without a chart: it may emit, ask and end in any way. Its actor `author` lives as long as the work.
 */
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
        ready: {
          on: {
            progress: { actions: emit(PROGRESS) },
            artifact: { target: 'started', actions: emit(MADE) },
            ask: 'asking',
            authorize: 'authorizing',
            ...outside(ENDS)
          }
        },
        started: { on: { chunk: { target: 'ready', actions: emit(MORE) }, ask: 'asking', ...outside(ENDS) } },
        asking: { tags: 'input-required', meta: { prompt: QUESTION }, on: { 'message.received': 'ready' } },
        authorizing: {
          tags: 'auth-required',
          meta: { prompt: PERMISSION },
          on: { 'message.received': 'ready', 'authorization.received': 'ready' }
        }
      }
    },
    completed: { type: 'final' },
    failed: { type: 'final', tags: 'failed', meta: { reason: FAILURE } },
    rejected: { type: 'final', tags: 'rejected', meta: { reason: REFUSAL } },
    broken: { type: 'final', tags: 'failed', meta: { reason: 'The work ended with an error.' } }
  },
  output: RESULT
})

/** The cases of the model: an event for each action. */
export const scriptedCases: Pick<Cases, 'events' | 'results'> = {
  events: Object.fromEntries(ACTS.map(type => [type, { type }])),
  results: { author: {} }
}

/** A work function that performs actions on demand. A restarted run performs them all again, as replayed work must. */
export class ScriptedWork implements WorkDouble {
  readonly #acts: Act[] = []
  #wake = nothing

  get work(): WorkFunction {
    return work => this.#run(work)
  }

  sendFromActor({ type }: EventObject): void {
    this.#acts.push(type as Act)
    this.#wake()
  }

  // It has no actors, and no state to lose.
  end = nothing
  clear = nothing

  /** The i-th action, when it is known. */
  async #act(i: number): Promise<Act> {
    for (;;) {
      const act = this.#acts[i]
      if (act) return act
      await new Promise<void>(resolve => (this.#wake = resolve))
    }
  }

  async #run({ emit: publish, ask }: WorkArguments): Promise<WorkEnd> {
    for (let i = 0; ; i += 1) {
      switch (await this.#act(i)) {
        case 'progress':
          publish(PROGRESS)
          break
        case 'artifact':
          publish(MADE)
          break
        case 'chunk':
          publish(MORE)
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
    /* c8 ignore next -- the loop always returns */
  }
}

function nothing(): void {}

/** Transitions from inside a state to states outside of it. */
function outside<Targets extends Readonly<Record<string, string>>>(
  targets: Targets
): { [Event in keyof Targets]: `#work.${Targets[Event]}` } {
  return Object.fromEntries(Object.entries(targets).map(([event, state]) => [event, `#work.${state}`])) as never
}
