import { createHash } from 'node:crypto'
import { invalidParams, type A2AError } from '../machines/protocol/errors.ts'
import type { Scope, TaskPlace, TaskQuery } from './store.ts'

/** Of a SHA-256 in base64url. */
const DIGEST_LENGTH = 43

/** What a page token is good for: the lists of one scope with these filters. */
export type Filters = Pick<TaskQuery, 'contextId' | 'state' | 'since'>

/**
 * A place in a list as text for the client to give back: a digest of whose list it is, by what filters, and of the place;
 * then the place. It needs no memory and no key here, so that it holds for as long as the tasks do, also after a restart;
 * it tells its owner nothing that the page did not.
 */
export function pageToken(place: TaskPlace, scope: Scope, filters: Filters): string {
  const { timestamp, taskId } = place
  const { tenant, principal } = scope
  const { contextId = null, state = null, since = null } = filters
  const digest = createHash('sha256').update(JSON.stringify([tenant, principal, contextId, state, since, timestamp, taskId])).digest('base64url')
  return digest + Buffer.from(`${timestamp} ${taskId}`).toString('base64url')
}

/**
 * The place in a token that was given out for this scope and these filters. Throws InvalidParams for any other text. Who
 * knows how tokens are made can make one, for a place in a list of their own: whose list is read is never up to the token.
 */
export function placeOf(token: string, scope: Scope, filters: Filters): TaskPlace {
  const text = Buffer.from(token.slice(DIGEST_LENGTH), 'base64url').toString()
  const space = text.indexOf(' ')
  const place = { timestamp: text.slice(0, Math.max(0, space)), taskId: text.slice(space + 1) }
  if (pageToken(place, scope, filters) !== token) throw notOurs()
  return place
}

function notOurs(): A2AError {
  return invalidParams({
    field: 'pageToken',
    description: 'must be the nextPageToken of an answer to the same caller, with the same contextId, status and statusTimestampAfter. Leave it out to begin again'
  })
}
