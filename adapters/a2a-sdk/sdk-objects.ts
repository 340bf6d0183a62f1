import * as sdk from '@a2a-js/sdk'
import { checkPackages } from '../peers/installed-packages.ts'

checkPackages(['@a2a-js/sdk'])

/** Converts the SDK's objects to wire JSON and back. */
export interface Codec<T> {
  fromJSON(json: unknown): T
  toJSON(object: T): unknown
}

/** A task as the SDK's object. */
export function sdkTask(json: unknown): sdk.Task {
  return withNulls(sdk.Task.fromJSON(json))
}

/** A message as the SDK's object. */
export function sdkMessage(json: unknown): sdk.Message {
  const message = sdk.Message.fromJSON(json)
  keepNulls(message)
  return message
}

/** An answer to SendMessage (§3.1.1) as the SDK's object, without its wrapper. */
export function sdkAnswer(json: object): sdk.Task | sdk.Message {
  return 'task' in json ? sdkTask(json.task) : sdkMessage((json as { message: unknown }).message)
}

/** An event of a stream as the SDK's object. */
export function sdkEvent(json: unknown): sdk.StreamResponse {
  const event = sdk.StreamResponse.fromJSON(json)
  const { payload } = event
  if (payload?.$case === 'task') withNulls(payload.value)
  if (payload?.$case === 'message') keepNulls(payload.value)
  if (payload?.$case === 'statusUpdate') keepNulls(payload.value.status?.message)
  if (payload?.$case === 'artifactUpdate') keepNulls(payload.value.artifact)
  return event
}

/** A page of tasks (§3.1.4) as the SDK's object. */
export function sdkTasks(json: unknown): sdk.ListTasksResponse {
  const page = sdk.ListTasksResponse.fromJSON(json)
  page.tasks.forEach(withNulls)
  return page
}

function withNulls(task: sdk.Task): sdk.Task {
  for (const content of [task.status?.message, ...task.history, ...task.artifacts]) keepNulls(content)
  return task
}

/** Restores data that is null (§4.1.6), which the SDK's codec drops. No other valid content is dropped. */
function keepNulls(content: { parts: sdk.Part[] } | undefined): void {
  for (const part of content?.parts ?? []) part.content ??= { $case: 'data', value: null }
}
