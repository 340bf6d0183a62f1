/**
 * What adapters use of agents' work beside the public words: the steps of a chart, its questions, its run and its stored form. Tests of
 * charts, drawings, delegation and `taskchart replay` are made of it.
 */
export { namedArtifacts } from './authoring/artifact-choices.ts'
export { publishedSchema } from './authoring/input-schema.ts'
export { ANSWERS, hears, mayAskTwice, withQuestionGuards } from './authoring/question-guards.ts'
export { taskIdOf, hostOf, actorPathOf } from './commits/actor-host.ts'
export { dryRunRestore } from './contexts/restore-dry-run.ts'
export { opinionOf } from './negotiation/bargaining.ts'
export { checkedTerms } from './negotiation/negotiation.ts'
export { validateValue } from './ports/standard-schema.ts'
export { jsonLoss } from './primitives/json.ts'
export { validateAnswer, promptedQuestion, isClientInput, openQuestion, reasonIn } from './work/chart-question.ts'
export { runOf } from './work/function-work.ts'
export { replaceSchedule, startRestored, takeId } from './xstate/actor-system.ts'
export { directedActor, isEndless, pureStart, pureStep, sendsSnapshots, withStepLimit } from './xstate/pure-step.ts'
export type { WorkEnd } from './authoring/work-arguments.ts'
export type { ActorHost } from './commits/actor-host.ts'
export type { Outlook, RestoreVerdict as Verdict } from './contexts/restore-dry-run.ts'
export type { SavedTask } from './snapshots/snapshot-text.ts'
export type { AnswerValidation as Heard } from './work/chart-question.ts'
export type { Director } from './xstate/pure-step.ts'
