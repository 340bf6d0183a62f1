import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { AgentProvider, useAgent } from 'taskchart/react'
import { Chat } from './chat.tsx'

const url = new URLSearchParams(location.search).get('agent') ?? 'http://127.0.0.1:4242/'

const STATES = {
  connecting: 'Connecting',
  open: 'Connected',
  lost: 'Connection lost, connecting again',
  closed: 'Not connected'
}

function App() {
  const { agent, state, error, reconnect } = useAgent(url)
  if (agent) {
    return (
      <AgentProvider agent={agent}>
        <header>
          <h1>{new URL(url).host}</h1>
          <span className="state" data-state={state} role="status">
            {STATES[state]}
          </span>
          {state === 'closed' && <button onClick={reconnect}>Connect again</button>}
          {/* The address without the id of a context begins a new one. */}
          <a href={location.pathname + location.search}>New</a>
        </header>
        <Chat agent={agent} />
      </AgentProvider>
    )
  }
  return (
    <div className="notice" role="status">
      <p>{error instanceof Error ? error.message : `Connecting to ${url} …`}</p>
      {error !== undefined && <button onClick={reconnect}>Connect again</button>}
    </div>
  )
}

const root = document.getElementById('app')
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>
  )
