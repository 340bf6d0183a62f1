/**
 * What adapters use of agents' work beside the public words: the steps of a chart, its questions, its run and its
 * stored form, and the store in memory. Tests of charts, drawings, delegation and `taskchart diff` are made of it.
 */
export { agentOfVersion } from './agent/earlier-versions.ts'
export { namedArtifacts } from './authoring/words.ts'
export { publishedSchema } from './authoring/input-schema.ts'
export { toolsOf } from './authoring/work-arguments.ts'
export { ANSWERS, hears, mayAskTwice, withQuestionGuards } from './authoring/question-guards.ts'
export { taskIdOf, hostOf, actorPathOf } from './commits/actor-host.ts'
export { countOpenVersions } from './contexts/earlier-tasks.ts'
export { dryRunRestore, readOpenRow, tryRestore } from './contexts/restore-dry-run.ts'
export { readRecord, replayTask } from './contexts/task-replay.ts'
export {
  type AgentOutline,
  CODE_OPTIONS,
  type LocalModules,
  type ModuleDigests,
  agentOutline,
  outlineForVersion,
  outlineText,
  parseOutline,
  PLAIN_OPTIONS,
  type WorkOutline
} from './definitions/agent-outline.ts'
export {
  answerFormOf,
  answerFormText,
  type ChartParts,
  type CodePart,
  type Decisive,
  type ModuleReads,
  nameOf,
  partsOf,
  pathOf,
  type StateParts
} from './definitions/chart-parts.ts'
export { textDigest } from './definitions/code-text.ts'
export { joinedTokens, mentionedNames, plainSource, RESERVED, type Token, tokensOf } from './definitions/source-text.ts'
export { type Names, namesSince } from './snapshots/renames.ts'
export { opinionOf } from './negotiation/bargaining.ts'
export { checkedTerms } from './negotiation/negotiation.ts'
export { memoryStore } from './store/memory/memory-store.ts'
export { validateValue } from './ports/standard-schema.ts'
export { jsonLoss } from './primitives/json.ts'
export {
  validateAnswer,
  promptedQuestion,
  isClientInput,
  openQuestion,
  reasonIn,
  receivedAnswer
} from './work/chart-question.ts'
export { runOf } from './work/function-work.ts'
export { patchIn } from './work/journal.ts'
export { pointerPart } from './work/redacted-values.ts'
export { replaceSchedule, startRestored, takeId } from './xstate/actor-system.ts'
export { type GuardFunction, withReplacedGuards } from './xstate/guarded-chart.ts'
export { createActor, emit, promiseLogic } from './xstate/library.ts'
export { directedActor, isEndless, pureStart, pureStep, sendsSnapshots, withStepLimit } from './xstate/pure-step.ts'
export { type ChartConfiguration, SkeletonChart, UNNAMED } from './xstate/skeleton-chart.ts'
export { noteWrittenLogic, writtenConfig } from './xstate/state-nodes.ts'
export { chartVersion, FROM_START, UNKNOWN } from './xstate/transition-counter.ts'
export type { MessagePolicy } from './agent/policies.ts'
export type { ReceivedMessage, WorkEnd, WorkStepArguments } from './authoring/work-arguments.ts'
export type { ActorHost } from './commits/actor-host.ts'
export type { RestoreOutlook } from './contexts/restore-dry-run.ts'
export type { RecordedTask, ReplayOutcome, TaskReplay } from './contexts/task-replay.ts'
export type { SavedTask } from './snapshots/snapshot-text.ts'
export type { WorkStore } from './store/retrying-reads.ts'
export type { AnswerValidation } from './work/chart-question.ts'
export type { ChartEffect } from './xstate/effects.ts'
export type { Director } from './xstate/pure-step.ts'
export type { TransitionCount } from './xstate/transition-counter.ts'
