import { agentRefusal, agentState } from './agent/agent.ts'
import { KeyForm } from './agent/key-form.tsx'
import { feedState, hello, reloadError } from './feed/feed.ts'
import { isHelpOpen } from './help.tsx'
import { nextTheme, theme } from './theme.ts'

/** Which agent this is, and how the connections stand. */
export function Header() {
  const { name, version, description } = hello.value?.agent ?? {}
  const isThere = feedState.value === 'open' && agentState.value === 'open'
  return (
    <header class="page-header">
      <h1 title={description}>{name ?? 'taskchart'}</h1>
      {version && <span class="quiet">{version}</span>}
      <code class="agent-url">{hello.value?.url ?? ''}</code>
      <span class="tools-gap" />
      <span role="status" class={isThere ? 'link link-there' : 'link link-lost'} title={linkTitle()}>{linkText(isThere)}</span>
      <button type="button" class="plain" onClick={nextTheme} title="Light, dark, or as the system has it">{`Theme: ${theme.value}`}</button>
      <button type="button" class="plain" onClick={() => (isHelpOpen.value = true)} title="Keys (?)" aria-label="Help">?</button>
      {reloadError.value !== undefined && <p class="banner wrong" role="alert">{`The agent’s file was saved, but could not be loaded; the one before goes on. ${reloadError.value}`}</p>}
      {agentRefusal.value !== undefined && feedState.value === 'open' && <KeyForm />}
    </header>
  )
}

function linkText(isThere: boolean): string {
  if (isThere) return 'connected'
  return feedState.value === 'lost' || agentState.value === 'lost' ? 'connection lost, trying again' : 'connecting'
}

function linkTitle(): string {
  return `Hub: ${feedState.value}. Agent: ${agentState.value}.`
}
