import type { OutputInterface } from 'ai'
import type { WorkFunction } from '../../runtime/work/function-work.ts'
import { checkAnswerOptions, type AnswerOptions } from './answer/answer-options.ts'
import { answerWithModel } from './answer/answer-with-model.ts'
import { checkAi } from './model/peer.ts'

/**
 * Work that a model does, as {@link answerWithModel} says: `defineAgent({ card, work: modelWork({ model, system: '…' }) })`.
 * Throws TypeError or RangeError for options that cannot be meant, and if the AI SDK is not installed.
 */
export function modelWork<Output extends OutputInterface = OutputInterface<string, string, never>>(options: AnswerOptions<Output>): WorkFunction {
  checkAi()
  checkAnswerOptions(options)
  return work => answerWithModel(work, options)
}
