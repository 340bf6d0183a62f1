/**
 * taskchart/ai: models of any provider of the AI SDK (`ai` 6 and 7, an optional peer) as work. `modelWork({ model })`
 * is the work of a task, `answerWithModel(work, { model })` is one answer within work, `modelReply({ model })` replies
 * without tasks.
 */
export { answerWithModel } from './answer-with-model.ts'
export { conversation } from './conversation.ts'
export { modelReply, modelWork } from './model-work.ts'

export type { ModelAnswer } from './answer-with-model.ts'
export type { ToolApproval } from './tools.ts'
export type { Usage } from './conversation.ts'
