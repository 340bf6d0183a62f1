/**
 * taskchart/ai: models of any provider of the AI SDK (`ai` 6, a peer to be installed) as work: `modelWork({ model })` does
 * a task, `answerWithModel(work, { model })` is a part of one, `modelReply({ model })` answers messages without tasks.
 */
export { answerWithModel } from './answer/answer-with-model.ts'
export { conversation } from './conversation.ts'
export { MODEL_METADATA } from './model/model-metadata.ts'
export { modelReply } from './model-reply.ts'
export { modelWork } from './model-work.ts'

export type { AnswerArtifactOptions, AnswerOptions } from './answer/answer-options.ts'
export type { ConversationBounds } from './conversation.ts'
export type { ModelAnswer } from './answer/answer-with-model.ts'
export type { ReplyOptions } from './model-reply.ts'
export type { ToolDecision } from './tools/tool-questions.ts'
export type { Usage } from './model/usage.ts'
