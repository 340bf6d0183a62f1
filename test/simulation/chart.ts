import { assign, emit, enqueueActions, type AnyStateMachine } from 'xstate'
import type { ProducedArtifact, Progress } from '../../runtime/authoring/words.ts'
import { fromPromise, progress, setupWork, textOf, type AuthorizationReceived } from '../../runtime/index.ts'
import type { Reach } from './outside.ts'
import { chunks, given, RESULT } from './sayings.ts'
import { scriptOf, type Op } from './script.ts'

interface ChartContext {
  readonly taskId: string
  readonly ops: readonly Op[]
  /** Where it is in the script. */
  readonly at: number
  /** What it says next. */
  readonly said: string
}

/** Work as a statechart that does what the message says which opened its task. */
export function chartOf(outside: Reach): AnyStateMachine {
  const goesTo = (kind: Op['kind'], target: string) => ({ guard: { type: 'is' as const, params: kind }, target })
  return setupWork({
    types: { context: {} as ChartContext, events: {} as AuthorizationReceived },
    actors: {
      effect: fromPromise<number, ChartContext>(({ input: { taskId, at }, step }) =>
        step('effect', ({ idempotencyKey }) => outside.effect(taskId, at, idempotencyKey))
      ),
      busy: fromPromise<void, ChartContext>(({ input }) => outside.busy(msAt(input))),
      broken: fromPromise<void>(() => Promise.reject(new Error('as the script says')))
    },
    guards: {
      is: ({ context: { ops, at } }, kind: Op['kind']) => ops[at]?.kind === kind,
      isDone: ({ context: { ops, at } }) => at >= ops.length
    },
    delays: { nap: ({ context }) => msAt(context) }
  }).createMachine({
    context: ({ input }) => ({ taskId: input.taskId, ops: scriptOf(textOf(input.message)), at: 0, said: '' }),
    initial: 'going',
    states: {
      going: {
        always: [
          { guard: 'isDone', target: 'done' },
          goesTo('question', 'asking'),
          goesTo('hurry', 'hurrying'),
          goesTo('login', 'authorizing'),
          goesTo('effect', 'effecting'),
          goesTo('busy', 'busy'),
          goesTo('sleep', 'sleeping'),
          goesTo('throw', 'throwing'),
          goesTo('fail', 'failing'),
          goesTo('reject', 'rejecting'),
          { target: 'saying' }
        ]
      },
      saying: {
        always: {
          target: 'going',
          actions: [
            enqueueActions(({ context, enqueue }) => {
              for (const words of wordsAt(context)) enqueue.emit(words)
            }),
            assign({ at: ({ context }) => context.at + 1 })
          ]
        }
      },
      telling: {
        always: {
          target: 'going',
          actions: [emit(({ context }) => progress(context.said)), assign({ at: ({ context }) => context.at + 1 })]
        }
      },
      asking: {
        tags: 'input-required',
        meta: { prompt: ({ context }) => `q@${context.at}` },
        on: {
          'message.received': {
            target: 'telling',
            actions: assign({ said: ({ context, event }) => `q@${context.at}: ${textOf(event.message)}` })
          }
        }
      },
      hurrying: {
        tags: 'input-required',
        meta: { prompt: ({ context }) => `h@${context.at}` },
        on: {
          'message.received': {
            target: 'telling',
            actions: assign({ said: ({ context, event }) => `h@${context.at}: ${textOf(event.message)}` })
          }
        },
        after: { nap: { target: 'telling', actions: assign({ said: ({ context }) => `h@${context.at}: late` }) } }
      },
      authorizing: {
        tags: 'auth-required',
        meta: { prompt: ({ context }) => `u@${context.at}` },
        on: {
          'message.received': {
            target: 'telling',
            actions: assign({ said: ({ context, event }) => `u@${context.at}: ${given(event)}` })
          },
          'authorization.received': {
            target: 'telling',
            actions: assign({ said: ({ context, event }) => `u@${context.at}: ${given(event)}` })
          }
        }
      },
      effecting: {
        invoke: {
          src: 'effect',
          input: ({ context }) => context,
          onDone: {
            target: 'telling',
            actions: assign({ said: ({ context, event }) => `e@${context.at}: ${event.output}` })
          }
        }
      },
      busy: {
        invoke: {
          src: 'busy',
          input: ({ context }) => context,
          onDone: { target: 'going', actions: assign({ at: ({ context }) => context.at + 1 }) }
        }
      },
      sleeping: {
        after: { nap: { target: 'telling', actions: assign({ said: ({ context }) => `z@${context.at}` }) } }
      },
      throwing: { invoke: { src: 'broken' } },
      failing: { type: 'final', tags: 'failed', meta: { reason: ({ context }) => `f@${context.at}` } },
      rejecting: { type: 'final', tags: 'rejected', meta: { reason: ({ context }) => `r@${context.at}` } },
      done: { type: 'final' }
    },
    output: RESULT
  })
}

function msAt({ ops, at }: ChartContext): number {
  const op = ops[at]
  return op && 'ms' in op ? op.ms : 0
}

/** The words of an operation that is done at once. */
function wordsAt({ ops, at }: ChartContext): (Progress | ProducedArtifact)[] {
  const op = ops[at]
  if (op?.kind === 'progress') return [progress(`p@${at}`)]
  return op?.kind === 'chunks' ? [...chunks(at, op.count)] : []
}
