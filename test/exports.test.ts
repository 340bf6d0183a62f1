import t from 'tap'
import * as sdk from '../adapters/a2a-sdk/index.ts'
import * as ai from '../adapters/ai/index.ts'
import * as auth from '../adapters/auth/ready.ts'
import * as cards from '../adapters/cards/index.ts'
import * as client from '../adapters/client/connect.ts'
import * as delegation from '../adapters/delegation/index.ts'
import * as grpc from '../adapters/grpc/index.ts'
import * as inspector from '../adapters/inspector/index.ts'
import * as legacy from '../adapters/legacy/index.ts'
import * as openTelemetry from '../adapters/opentelemetry/open-telemetry.ts'
import * as push from '../adapters/push/webhooks.ts'
import * as websocket from '../adapters/serve/serve-websocket.ts'
import * as http from '../adapters/serve/serve.ts'
import * as sqlite from '../adapters/storage/sqlite.ts'
import * as testing from '../adapters/testing/index.ts'
import * as taskchart from '../runtime/index.ts'

await t.test('the package exports these names and no others', async t => {
  t.same(Object.keys(taskchart).toSorted(), [
    'A2AError', 'accepted', 'answerOf', 'artifact', 'artifactChoices', 'artifactToRefine', 'authRequired', 'chosenArtifact', 'createRuntime', 'data', 'dataOf',
    'declined', 'defineAgent', 'failed', 'file', 'fromPromise', 'inputRequired', 'isA2AError', 'memoryStore', 'negotiation', 'offer', 'prerequisites', 'progress',
    'readArtifact', 'refined', 'rejected', 'reply', 'setupWork', 'taskCompleted', 'text', 'textOf', 'typed', 'whichArtifact'
  ])
  t.same(Object.keys(websocket), ['serveWebSocket'])
  t.same(Object.keys(client).toSorted(), ['A2AError', 'acceptance', 'answerSchemaOf', 'artifactVersions', 'connect', 'declining', 'offerOf', 'proposal'])
  t.same(Object.keys(auth).toSorted(), ['anyOf', 'apiKey', 'bearerJwt'])
  t.same(Object.keys(cards).toSorted(), ['cardSigner', 'cardVerifier'])
  t.same(Object.keys(ai).toSorted(), ['MODEL_METADATA', 'answerWithModel', 'conversation', 'modelReply', 'modelWork'])
  t.same(Object.keys(delegation).toSorted(), ['delegate', 'remoteAgent'])
  t.same(Object.keys(testing).toSorted(), ['PATH_KINDS', 'PathError', 'VirtualClock', 'agentTests', 'allWays', 'bargainClause', 'chartMermaid', 'chartOf', 'clauseOf', 'explained', 'planFor', 'testAgent'])
  t.same(Object.keys(sqlite).toSorted(), ['StorageError', 'readSqlite', 'sqliteStore'])
  t.same(Object.keys(sdk).toSorted(), ['WebSocketTransport', 'WebSocketTransportFactory', 'expressErrors', 'fromExecutor', 'toRequestHandler', 'whileConnected'])
  t.same(Object.keys(grpc).toSorted(), ['grpc', 'grpcErrors'])
  t.same(Object.keys(inspector), ['inspect'])
  t.same(Object.keys(legacy).toSorted(), ['dialect01', 'dialect03'])
  t.same(Object.keys(push), ['webhooks'])
  t.same(Object.keys(http).toSorted(), ['cardHandler', 'httpHandler', 'serve'])
  t.same(Object.keys(openTelemetry), ['openTelemetry'])
})
