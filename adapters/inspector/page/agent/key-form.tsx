import { signal } from '@preact/signals'
import { agentRefusal, openWithKey } from './agent.ts'

const key = signal('')
const wasTried = signal(false)

/** Asks for the key of an agent that tells its callers apart. */
export function KeyForm() {
  const submit = (event: Event) => {
    event.preventDefault()
    wasTried.value = true
    void openWithKey(key.value)
  }
  return (
    <form class="banner key-form" aria-label="Credentials" onSubmit={submit}>
      <label for="key">The agent does not let this page in without credentials. Its key, or a token:</label>
      <input id="key" type="password" autocomplete="off" required value={key.value} onInput={event => (key.value = event.currentTarget.value)} />
      <button type="submit">Use it</button>
      {wasTried.value && <span class="wrong" role="alert">{agentRefusal.value}</span>}
    </form>
  )
}
