/**
 * taskchart/ai: models of any provider of the AI SDK (`ai` 6 and 7, an optional peer) as work. `modelWork({ model })`
 * is the work of a task, `answerWithModel(work, { model })` is one answer within work, `modelReply({ model })` replies
 * without tasks.
 */
export { answerWithModel } from './answer-with-model.ts'
export { conversation } from './conversation.ts'
export { MODEL_METADATA } from './conversation.ts'
export { modelReply, modelWork } from './model-work.ts'

export type { AnswerArtifactOptions, AnswerOptions } from './answer-options.ts'
export type { ConversationBounds } from './conversation.ts'
export type { ModelAnswer } from './answer-with-model.ts'
export type { ReplyOptions } from './model-work.ts'
export type { ToolApproval, ToolApprovalStatus } from './tools.ts'
export type { ToolDecision } from './tools.ts'
export type { Usage } from './conversation.ts'
