import { memo, useEffect, useRef, useState, type FormEvent } from 'react'
import { negotiate, type AgentClient, type ArtifactVersion, type Message, type Offer } from 'taskchart/client'
import { useConversation } from 'taskchart/react'
import { Parts } from './parts.tsx'
import { QuestionForm } from './question.tsx'

/** How many artifacts are shown at first. */
const FIRST_RESULTS = 20

/** How a task ended, if it was not completed. Its last message may say why. */
const ENDS: Readonly<Record<string, string>> = {
  TASK_STATE_FAILED: 'The task failed.',
  TASK_STATE_CANCELED: 'The task was stopped.',
  TASK_STATE_REJECTED: 'The agent refused the task.'
}

/** The states of a task that has ended. */
const OVER = new Set(['TASK_STATE_COMPLETED', ...Object.keys(ENDS)])

/** One context: its messages, the open question or offer, and the artifacts. Its id is in the address after `#`. */
export function Chat({ agent }: { readonly agent: AgentClient }) {
  const [opened] = useState(() => location.hash.slice(1) || undefined)
  const { contextId, messages, tasks, hasMore, artifacts, question, offer, isBusy, error, send, more } =
    useConversation(opened)
  const [refined, refine] = useState<ArtifactVersion>()
  const [areAllShown, showAll] = useState(false)
  const end = useRef<HTMLDivElement>(null)
  const running = tasks.findLast(({ status }) => !OVER.has(status.state))
  const ended = ENDS[tasks.at(-1)?.status.state ?? '']
  const latest = messages.at(-1)?.messageId
  const results = Array.from(artifacts).toReversed()

  useEffect(() => {
    if (contextId !== undefined) history.replaceState(null, '', `#${contextId}`)
  }, [contextId])
  useEffect(() => {
    void end.current?.scrollIntoView({ block: 'nearest' })
  }, [latest, question, offer])

  const say = (text: string) => {
    refine(undefined)
    return send(text, refined ? { taskId: null, referenceTaskIds: [refined.taskId] } : {})
  }
  // A task that has ended meanwhile cannot be canceled, as its status shows.
  const stop = (id: string) => void agent.cancelTask({ id }).catch(() => {})
  return (
    <main>
      <section className="talk" aria-label="Messages">
        {hasMore && (
          <button className="quiet" disabled={isBusy} onClick={more}>
            Earlier messages
          </button>
        )}
        {messages.length === 0 && <p className="hint">{isBusy ? 'Reading …' : 'Say what you want.'}</p>}
        <Bubbles messages={messages} />
        {offer && <OfferCard offer={offer} isBusy={isBusy} answer={part => send([part], { taskId: null })} />}
        {question?.schema && (
          <QuestionForm
            key={question.message?.messageId}
            schema={question.schema}
            isBusy={isBusy}
            answer={data => send({ data })}
          />
        )}
        {ended !== undefined && !isBusy && <p className="hint">{ended}</p>}
        <div className="buttons">
          {(isBusy || (running && !question)) && (
            <p className="working" role="status">
              Working
            </p>
          )}
          {running && (
            <button className="quiet" onClick={() => stop(running.id)}>
              Stop
            </button>
          )}
        </div>
        {error instanceof Error && (
          <p className="error" role="alert">
            {error.message}
          </p>
        )}
        <Say label={question ? 'Answer' : refined ? `Change ${refined.name}` : 'Message'} say={say} />
        <div ref={end} />
      </section>
      <section className="results" aria-label="Artifacts">
        {results.slice(0, areAllShown ? undefined : FIRST_RESULTS).map(([name, versions]) => (
          <Result key={name} versions={versions} refine={refine} />
        ))}
        {!areAllShown && results.length > FIRST_RESULTS && (
          <button className="quiet" onClick={() => showAll(true)}>
            All {results.length} artifacts
          </button>
        )}
      </section>
    </main>
  )
}

/** All messages. They render only when one is added. */
const Bubbles = memo(({ messages }: { readonly messages: readonly Message[] }) =>
  messages.map(message => <Bubble key={message.messageId} message={message} />)
)

/** One message. It renders once: messages never change. */
const Bubble = memo(({ message: { role, parts } }: { readonly message: Message }) => (
  <article className={role === 'ROLE_USER' ? 'mine' : 'theirs'}>
    <Parts parts={parts} />
  </article>
))

function Say({ label, say }: { readonly label: string; readonly say: (text: string) => Promise<void> }) {
  const [text, setText] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (text.trim() === '') return
    setText('')
    void say(text)
  }
  return (
    <form className="say" onSubmit={submit}>
      <input aria-label={label} placeholder={label} value={text} onChange={event => setText(event.target.value)} />
      <button>Send</button>
    </form>
  )
}

/** The buttons of an offer, whose terms are in the message above. The agent decides whether it still stands. */
function OfferCard({
  offer,
  isBusy,
  answer
}: {
  readonly offer: Offer
  readonly isBusy: boolean
  readonly answer: (part: ReturnType<typeof negotiate>) => Promise<void>
}) {
  return (
    <div className="card">
      <p className="hint">This offer stands until {new Date(offer.expiresAt).toLocaleString()}.</p>
      <div className="buttons">
        <button disabled={isBusy} onClick={() => answer(negotiate({ accept: offer }))}>
          Accept
        </button>
        <button disabled={isBusy} className="quiet" onClick={() => answer(negotiate({ decline: offer }))}>
          Decline
        </button>
      </div>
    </div>
  )
}

/** An artifact in its latest version. Earlier ones are a choice away. */
function Result({
  versions,
  refine
}: {
  readonly versions: readonly ArtifactVersion[]
  readonly refine: (version: ArtifactVersion) => void
}) {
  const [chosen, choose] = useState<number>()
  const version = versions[chosen ?? versions.length - 1] ?? versions.at(-1)
  if (!version) return null
  return (
    <article className="card">
      <div className="title">
        <h2>{version.name}</h2>
        {versions.length > 1 && (
          <select
            aria-label="Version"
            value={chosen ?? versions.length - 1}
            onChange={event => choose(Number(event.target.value))}
          >
            {versions.map(({ taskId, artifactId }, i) => (
              <option key={`${taskId} ${artifactId}`} value={i}>
                Version {i + 1}
              </option>
            ))}
          </select>
        )}
        <button className="quiet" onClick={() => refine(version)}>
          Change
        </button>
      </div>
      <Parts parts={version.artifact.parts} name={version.name} />
    </article>
  )
}
