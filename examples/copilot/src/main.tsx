import { CopilotChat, CopilotKitProvider } from '@copilotkit/react-core/v2'
import { StrictMode, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { AGENTS, type AgentName, copilotAgents } from './agents.ts'
import { Artifacts } from './artifacts.tsx'
import { offerCard } from './offer.tsx'
import { Question } from './question.tsx'

const names = Object.keys(AGENTS) as AgentName[]
const activities = [offerCard]

/** The address has the agent and the thread after `#`, so that a page that is loaded again goes on. */
function useAddress(): [AgentName, string] {
  const read = (): [AgentName, string] => {
    const [name, thread] = location.hash.slice(1).split('/')
    const agent = names.find(known => known === name) ?? 'barista'
    const threadId = thread ?? crypto.randomUUID()
    if (thread === undefined) history.replaceState(null, '', `#${agent}/${threadId}`)
    return [agent, threadId]
  }
  const [address, setAddress] = useState(read)
  useEffect(() => {
    const follow = () => setAddress(read())
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  return address
}

function App() {
  const [agentId, threadId] = useAddress()
  const [error, setError] = useState('')
  return (
    <CopilotKitProvider
      agents__unsafe_dev_only={copilotAgents}
      renderActivityMessages={activities}
      enableInspector={false}
      onError={({ error }) => setError(error.message)}
    >
      <header>
        <nav>
          {names.map(name => (
            <a key={name} href={`#${name}`} aria-current={name === agentId && 'page'}>
              {name}
            </a>
          ))}
        </nav>
      </header>
      <main key={threadId}>
        <CopilotChat
          agentId={agentId}
          threadId={threadId}
          labels={{
            welcomeMessageText: `Say “${AGENTS[agentId].hint}” to the ${agentId}.`,
            chatDisclaimerText: ''
          }}
        />
        <Question agentId={agentId} />
        <Artifacts agentId={agentId} />
        {error !== '' && (
          <p role="alert">
            {error} <button onClick={() => setError('')}>Close</button>
          </p>
        )}
      </main>
    </CopilotKitProvider>
  )
}

const dark = matchMedia('(prefers-color-scheme: dark)')
const paint = () => document.documentElement.classList.toggle('dark', dark.matches)
dark.addEventListener('change', paint)
paint()

const root = document.querySelector('#app')
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>
  )
