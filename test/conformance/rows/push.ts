import { say } from '../../fixtures/runtime-helpers.ts'
import { nowhere, row, type Level, type Row } from '../row.ts'

/** What is asked of agents that offer them. */
const NOT_THERE: readonly (readonly [id: number, level: Level, section: string, says: string])[] = [
  [82, 'M', '3.1.7', 'A configuration is kept, and comes back with its id; TaskNotFound for an unknown task'],
  [83, 'M', '3.1.7', 'A configuration lasts until the task ends or it is deleted'],
  [84, 'M', '3.1.8', 'A configuration is read again; a missing or foreign one is an error'],
  [85, 'M', '3.1.9', 'All configurations of a task are listed'],
  [86, 'M', '3.1.10', 'A deleted configuration gets nothing more; deleting twice is as deleting once'],
  [87, 'M', '4.3.3', 'What is pushed is a StreamResponse with one member'],
  [88, 'M', '4.3.3, 13.2', 'Credentials are sent as configured'],
  [89, 'M', '4.3.3', 'Each update is tried at least once with each webhook'],
  [90, 'S', '4.3.3, 13.2', 'It is tried again with growing pauses, each try for 10 to 30 seconds'],
  [91, 'S', '13.2', 'Private, loopback and link-local addresses are refused'],
  [92, 'M', '3.5.1', 'Pushing is the same whatever binding it was asked for on'],
  [93, 'M', '3.2.2, 6.6', 'A configuration that comes with SendMessage is that of its task'],
  [94, 'S', '13.2', 'Secrets of configurations are kept safe']
]

/** §10.5: push notifications, which are not offered. */
export const push: readonly Row[] = [
  row(81, 'M', '3.3.4', 'Without the capability every operation of push notifications is refused: PushNotificationNotSupported', async (t, { client, runtime }) => {
    t.notOk(runtime.agentCard([{ url: 'http://localhost', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]).capabilities.pushNotifications)
    const { id: taskId } = await client.task('x')
    const [config, place] = [{ url: 'https://example.com/' }, { taskId, id: 'p' }]
    for (const [method, params] of [
      ['CreateTaskPushNotificationConfig', { ...config, taskId }],
      ['GetTaskPushNotificationConfig', place],
      ['ListTaskPushNotificationConfigs', { taskId }],
      ['DeleteTaskPushNotificationConfig', place],
      ['SendMessage', say('x', {}, { taskPushNotificationConfig: config })]
    ] as const) t.equal((await client.refusal(method, params)).reason, 'PUSH_NOTIFICATION_NOT_SUPPORTED', method)
  }),
  ...NOT_THERE.map(([id, level, section, says]) => nowhere(id, level, section, says, 'push notifications are not offered: see 81'))
]
