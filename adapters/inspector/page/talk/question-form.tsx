import { useMemo, useState } from 'preact/hooks'
import { isObject } from '../../../../machines/protocol/codec/json.ts'
import type { TaskStatus } from '../../../../machines/protocol/objects.ts'
import type { Part } from '../../../../machines/protocol/parts.ts'
import { answerSchemaOf } from '../../../client/messages.ts'
import { hello } from '../feed/feed.ts'
import { jsonText } from '../frame/wording.ts'
import { SchemaField } from './schema-field.tsx'
import { fieldOf, startOf } from './schema-fields.ts'
import { formValue } from './schema-values.ts'
import { authorize, isSending, sendParts } from './sending.ts'

/** The form for a task's question: from its schema, or its choices, else for text. */
export function QuestionForm({ taskId, status }: { readonly taskId: string; readonly status: TaskStatus }) {
  const { message, state } = status
  const schema = useMemo(() => answerSchemaOf(message), [message])
  const field = useMemo(() => fieldOf(schema ?? { type: 'string' }), [schema])
  const [draft, setDraft] = useState(() => startOf(field, schema?.default))
  const [wrong, setWrong] = useState<string>()
  const choices = schema ? [] : (message?.parts ?? []).filter(part => 'data' in part)
  const isOutOfBand = state === 'TASK_STATE_AUTH_REQUIRED'
  const description = typeof schema?.description === 'string' ? schema.description : ''

  const submit = (event: Event) => {
    event.preventDefault()
    const said = formValue(field, draft, 'The answer')
    if ('wrong' in said) return setWrong(said.wrong)
    if ('nothing' in said && !isOutOfBand) return setWrong('The answer is missing')
    setWrong(undefined)
    const value = 'value' in said ? said.value : undefined
    if (isOutOfBand && hello.peek()?.authorizes === true) return authorize(taskId, value)
    void sendParts([typeof value === 'string' ? { text: value } : { data: value ?? null }], { taskId })
  }
  const heading = isOutOfBand ? 'Authorize' : 'Answer'
  return (
    <form class="question" aria-label="The task waits for you" onSubmit={submit}>
      {choices.length > 0 && (
        <div class="choices" role="group" aria-label="Choices">
          {choices.map((part, i) => (
            <button key={i} type="button" disabled={isSending.value} onClick={() => void sendParts([part], { taskId })}>{choiceText(part)}</button>
          ))}
        </div>
      )}
      <SchemaField field={field} draft={draft} change={setDraft} title={field.kind === 'object' ? '' : choices.length > 0 ? 'or in words' : isOutOfBand ? 'Credential' : 'Your answer'} description={description} />
      {schema && field.kind === 'json' && (
        <details>
          <summary>The JSON Schema of the answer</summary>
          <pre class="part-data">{jsonText(schema)}</pre>
        </details>
      )}
      {wrong !== undefined && <p class="wrong" role="alert">{`${wrong}.`}</p>}
      <button type="submit" class="main" disabled={isSending.value}>{heading}</button>
    </form>
  )
}

/** The label of a choice: its name, if it has one. */
function choiceText(part: Part): string {
  const value = 'data' in part ? part.data : undefined
  const name = isObject(value) ? (value.name ?? value.title ?? value.label) : value
  return typeof name === 'string' ? name : JSON.stringify(value)
}
