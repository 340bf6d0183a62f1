import type { Message } from '../../machines/protocol/objects.ts'
import type { AgentDefinition } from '../../runtime/agent/define-agent.ts'
import type { Question } from '../../runtime/authoring/questions.ts'
import type { WorkArguments, WorkEnd } from '../../runtime/authoring/work-arguments.ts'
import { authRequired, failed, inputRequired, progress, rejected, textOf } from '../../runtime/index.ts'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { WorkGenerator } from '../../runtime/work/function-work.ts'
import { chartOf } from './chart.ts'
import type { Reach } from './outside.ts'
import { chunks, given, RESULT } from './sayings.ts'
import { scriptOf } from './script.ts'

/** Work that does what the message says which opened its task: as a function, as a generator and as a statechart. */
export function worksIn(
  outside: Reach
): Readonly<Record<'function' | 'generator' | 'chart', AgentDefinition['work'] & {}>> {
  return { function: work => perform(work, outside), generator: work => recite(work, outside), chart: chartOf(outside) }
}

async function perform(work: WorkArguments, outside: Reach): Promise<WorkEnd> {
  const { emit, ask, step, sleep } = work
  for (const [at, op] of scriptOf(textOf(work.message)).entries()) {
    if (op.kind === 'progress') emit(progress(`p@${at}`))
    if (op.kind === 'chunks') for (const chunk of chunks(at, op.count)) emit(chunk)
    if (op.kind === 'question') emit(progress(`q@${at}: ${textOf(await ask(inputRequired(`q@${at}`)))}`))
    if (op.kind === 'hurry')
      emit(progress(`h@${at}: ${await ask(inputRequired(`h@${at}`, { deadlineMs: op.ms })).then(textOf, late)}`))
    if (op.kind === 'login') emit(progress(`u@${at}: ${given(await ask(authRequired(`u@${at}`)))}`))
    if (op.kind === 'effect')
      emit(
        progress(
          `e@${at}: ${await step('effect', ({ idempotencyKey }) => outside.effect(work.taskId, at, idempotencyKey))}`
        )
      )
    if (op.kind === 'busy') await outside.busy(op.ms)
    if (op.kind === 'throw') throw new Error('as the script says')
    if (op.kind === 'fail') return failed(`f@${at}`)
    if (op.kind === 'reject') return rejected(`r@${at}`)
    if (op.kind !== 'sleep') continue
    await sleep(op.ms)
    emit(progress(`z@${at}`))
  }
  return RESULT
}

/** Asks, and gives the answer, or that it did not come in time. */
function* hurried(at: number, deadlineMs: number): Generator<Question<Message>, string, Message> {
  try {
    return textOf(yield* inputRequired(`h@${at}`, { deadlineMs }))
  } catch (error) {
    return late(error)
  }
}

function late(error: unknown): string {
  if (isA2AError(error) && error.code === 'DeadlineExceeded') return 'late'
  throw error
}

async function* recite(work: WorkArguments, outside: Reach): ReturnType<WorkGenerator> {
  const { step, sleep } = work
  for (const [at, op] of scriptOf(textOf(work.message)).entries()) {
    if (op.kind === 'progress') yield progress(`p@${at}`)
    if (op.kind === 'chunks') yield* chunks(at, op.count)
    if (op.kind === 'question') yield progress(`q@${at}: ${textOf(yield* inputRequired(`q@${at}`))}`)
    if (op.kind === 'hurry') yield progress(`h@${at}: ${yield* hurried(at, op.ms)}`)
    if (op.kind === 'login') yield progress(`u@${at}: ${given(yield* authRequired(`u@${at}`))}`)
    if (op.kind === 'effect')
      yield progress(
        `e@${at}: ${await step('effect', ({ idempotencyKey }) => outside.effect(work.taskId, at, idempotencyKey))}`
      )
    if (op.kind === 'busy') await outside.busy(op.ms)
    if (op.kind === 'throw') throw new Error('as the script says')
    if (op.kind === 'fail') return failed(`f@${at}`)
    if (op.kind === 'reject') return rejected(`r@${at}`)
    if (op.kind !== 'sleep') continue
    await sleep(op.ms)
    yield progress(`z@${at}`)
  }
  return RESULT
}
