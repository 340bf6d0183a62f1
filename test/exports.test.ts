import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'

interface Exported {
  readonly name: string
  readonly isType: boolean
  /** The source file that declares it. */
  readonly file: string
}

/** What each subpath exports: values, then types. */
const PUBLIC: Readonly<Record<string, { readonly values: string; readonly types: string }>> = {
  '.': {
    values: `
      A2AError accepted answerOf artifact artifactChoices artifactToRefine authRequired chosenArtifact createRuntime data dataOf
      declined defineAgent failed file fromPromise inputRequired isA2AError memoryStore negotiation offer prerequisites progress
      propertiesOf readArtifact refined rejected reply setupNegotiation setupWork taskCompleted text textOf typed
      whichArtifact
    `,
    types: `
      Accepted Agent AgentCard AgentDefinition AgentDescription AgentExtension AgentInterface AgentSkill Artifact ArtifactChoice
      ArtifactReference ArtifactWords Authenticate Authorization AuthorizationReceived AuthorizationRequest Authorize CallContext
      Caller Clock Credentials DataToErase Declined EarlierArtifact ErrorCode ExtendedCard Failed Ids LimitChanges Limits
      ListTasksResponse Logger Message MessagePolicy MessageReceived Migrate NegotiateFunction Negotiation NegotiationAnswer
      NegotiationArguments NegotiationOptions Offered OpenOffer Part Principal ProducedArtifact Progress PromiseArguments Property Question
      QuestionOptions Quota ReceivedMessage RecoveryType Refinement RefiningOptions Rejected Reply RequestDetails RespondArguments
      RestartOption Retention Runtime RuntimeOptions SendMessageResponse SignCard StandardSchema Step StepArguments StoredWork
      StreamResponse Task TaskState TaskStatus Tenant TenantOptions WhichArtifactOptions Words WorkArguments WorkChart
      WorkFunction WorkGenerator WorkInput WorkMeta WorkResult WorkStepArguments WorkTag WorkWords
    `
  },
  './websocket': {
    values: 'serveWebSocket',
    types: 'ServeOptions Served'
  },
  './http': {
    values: 'cardHandler httpHandler serve',
    types: 'CardHandler CardHandlerOptions Handler HandlerOptions OpenBinding PortBinding ServeOptions Served'
  },
  './client': {
    values: `
      A2AError acceptOffer answerSchemaOf artifactVersions artifactsByName connect conversation declineOffer foldTask isTerminal offerIn
      proposeTerms questionOf textOf watchTask
    `,
    types: `
      AgentCard AgentClient AgentInterface AgentSkill Artifact ArtifactVersion ArtifactVersions AuthenticationInfo CallOptions CancelTaskRequest
      CardLimits ClientCredentials ConnectOptions Content Conversation ConversationView CreateTaskPushNotificationConfigRequest
      DeleteTaskPushNotificationConfigRequest ErrorCode FieldViolation GetTaskPushNotificationConfigRequest GetTaskRequest LinkState
      ListTaskPushNotificationConfigsRequest ListTaskPushNotificationConfigsResponse ListTasksRequest ListTasksResponse Message Offer OpenQuestion
      Part Role SendMessageConfiguration SendMessageRequest SendMessageResponse SendOptions StreamResponse SubscribeToTaskRequest Task
      TaskArtifactUpdateEvent TaskPushNotificationConfig TaskState TaskStatus TaskStatusUpdateEvent TaskView VersionReference WatchOptions Watched
      WatchedTask
    `
  },
  './react': {
    values: 'AgentProvider useAgent useConversation useTask',
    types: 'AgentConnection UsedConversation UsedTask'
  },
  './a2a-sdk': {
    values: 'WebSocketTransport WebSocketTransportFactory expressErrors fromExecutor toRequestHandler whileConnected',
    types: 'RequestHandlerOptions'
  },
  './grpc': {
    values: 'grpc grpcErrors',
    types: 'GrpcOptions'
  },
  './legacy': {
    values: 'dialect01 dialect03',
    types: 'Card03Options Dialect Dialect01Options RestCall RestRequest'
  },
  './store': {
    values: '',
    types: `
      Commit ContextKey DeduplicationKey Erasure JournalRow MessageRow NewWebhook OpenTasksFilter ReadOptions Scope SendRow StateCounts Store StoreStatus
      StoredContext StoredTask StoredWebhook SweepBounds TaskChoice TaskCursor TaskEvent TaskPage TaskQuery TaskRow TaskSize TransitionCount TransitionStore Wake
      WakeCursor Webhook WebhookNote WebhookProgress WebhookRow
    `
  },
  './sqlite': {
    values: 'StorageError readSqlite sqliteStore',
    types: 'DriverName SqliteOptions StoreReader'
  },
  './postgres': {
    values: 'StorageError postgresStore readPostgres',
    types: 'PostgresClient PostgresOptions PostgresPool PostgresQuery StoreReader'
  },
  './push': {
    values: 'webhooks',
    types: 'OwnedWebhook WebhookAnswer WebhookBody WebhookBodyWriter WebhookPost WebhookSender WebhooksOptions'
  },
  './delegation': {
    values: 'delegate remoteAgent',
    types: 'DelegateOptions RemoteAgent RemoteAnswer RemoteEvent RemoteInput RemoteOptions RemoteQuestion RemoteResult'
  },
  './auth': {
    values: 'anyOf apiKey bearerJwt',
    types: 'ApiKeyOptions BearerJwtOptions JwtClaims JwtKeys'
  },
  './cards': {
    values: 'cardSigner cardVerifier',
    types: 'CardSignerOptions CardVerifierOptions PrivateKey VerifyCard'
  },
  './ai': {
    values: 'MODEL_METADATA answerWithModel conversation modelReply modelWork',
    types:
      'AnswerArtifactOptions AnswerOptions ConversationBounds ModelAnswer ReplyOptions ToolApproval ToolApprovalStatus ToolDecision Usage'
  },
  './inspector': {
    values: 'inspect',
    types: 'InspectOptions SideApp'
  },
  './testing': {
    values: `
      BoundError PATH_KINDS PathError VirtualClock agentTests allDrivers chartMermaid chartOf checkWalk describeBargainMove describeMove explainFailure
      planFor promelaOf proveAgent proveChart testAgent
    `,
    types: `
      AgentTestOptions AgentTests AnyTerm AtStep BargainMove BargainPath BoundOptions ByName Cases ChartCases Choice ComparedEvent Coverage CoverageCount CoverageGap Driver Move
      OpeningCase Path PathKind PathTest Plan PlanOptions Proof ProofOptions PropertyWords ReachedParts Step Term TestContext Verdict Walk WalkStep WalkToCheck WalkedStep
    `
  },
  './telemetry': {
    values: '',
    types:
      'Health LiveActors Metric MetricDefinition MetricSource MetricValue Observation Observer SpanAttributes SpanStart Telemetry TelemetrySpan TraceCarrier'
  },
  './metrics': {
    values: 'metricsText serveMetrics',
    types: 'MetricsOptions ServedMetrics'
  },
  './opentelemetry': {
    values: 'openTelemetry',
    types: ''
  }
}

const { exports: subpaths } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  exports: Record<string, { types: string } | string>
}

/** The source files of the subpaths. */
const sources = Object.entries(subpaths).flatMap(([subpath, target]) =>
  typeof target === 'string' ? [] : [[subpath, target.types.replace('./dist/', '').replace('.d.ts', '.ts')] as const]
)

const DECLARED = /^export (?:declare |abstract |async )*(function\*?|class|const|interface|type) (\w+)/gm
const LISTED = /^export (type )?\{([^}]*)\}(?: from '([^']+)')?/gm

function exportsOf(file: string): Exported[] {
  const text = readFileSync(file, 'utf8')
  const declared = Array.from(text.matchAll(DECLARED), ([, kind = '', name = '']) => ({
    name,
    isType: kind === 'interface' || kind === 'type',
    file
  }))
  const listed = Array.from(text.matchAll(LISTED)).flatMap(([, types, names = '', from]) =>
    names.split(',').map(name => {
      const [, type = types, own = ''] = /^\s*(type )?(\w+)\s*$/.exec(name) ?? []
      const source = from ?? new RegExp(`^import [^']*\\b${own}\\b[^']* from '([^']+)'`, 'm').exec(text)?.[1] ?? ''
      return {
        name: own,
        isType: type !== undefined,
        file: source.startsWith('.') ? normalize(join(dirname(file), source)) : file
      }
    })
  )
  return [...declared, ...listed]
}

const namesOf = (exported: readonly Exported[]) => exported.map(({ name }) => name).toSorted()
const words = (text = '') => text.split(/\s+/).filter(Boolean)

for (const [subpath, file] of sources) {
  await t.test(`${join('taskchart', subpath)} exports these values and types, and no others`, async t => {
    const exported = exportsOf(file)
    const values = exported.filter(({ isType }) => !isType)
    t.strictSame(namesOf(values), words(PUBLIC[subpath]?.values))
    t.strictSame(namesOf(exported.filter(({ isType }) => isType)), words(PUBLIC[subpath]?.types))
    const loaded = (await import(new URL(`../${file.replace('.ts', '.js')}`, import.meta.url).href)) as object
    t.strictSame(Object.keys(loaded).toSorted(), namesOf(values), 'the values are there at run time')
    t.match(
      readFileSync('docs/architecture.md', 'utf8'),
      `| \`${join('taskchart', subpath)}\` |`,
      'the guide has a row for it'
    )
  })
}

await t.test('the root exports at most 90 types', async t => {
  t.ok(exportsOf('runtime/index.ts').filter(({ isType }) => isType).length <= 90)
})

await t.test('every public export has a docstring', async t => {
  for (const { name, file } of sources.flatMap(([, file]) => exportsOf(file))) {
    t.match(
      readFileSync(file, 'utf8'),
      new RegExp(
        `\\*/\\n(?:export )?(?:declare |abstract |async )*(?:function\\*?|class|const|interface|type) ${name}\\b`
      ),
      `${name} of ${file}`
    )
  }
})
