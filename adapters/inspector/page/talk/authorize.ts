import { computed } from '@preact/signals'
import type { JsonValue } from '../../../../machines/protocol/codec/json.ts'
import { askHub, authorized } from '../feed/feed.ts'

/** Why the last authorization was not taken. */
export const authorizeError = computed(() => authorized.value?.error)

/** Tells the agent, through the hub, that a task was authorized out of band (§7.6.1): A2A has no word for that. */
export function authorize(taskId: string, data: JsonValue | undefined): void {
  authorized.value = undefined
  askHub({ type: 'authorize', taskId, ...(data !== undefined && { data }) })
}
