/** The origin of Stately's inspector. */
export const STATELY_ORIGIN = 'https://stately.ai'

/** The page that passes the hub's events on to Stately's inspector, which opens no sockets itself. */
export const statelyPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Stately Inspector</title>
<style>html, body, iframe { margin: 0; border: 0; width: 100%; height: 100% } p { font: 1rem system-ui; padding: 1rem }</style>
</head>
<body data-token="TOKEN">
<iframe title="Stately Inspector" src="${STATELY_ORIGIN}/inspect"></iframe>
<script src="/inspector/stately.js"></script>
</body>
</html>
`

/**
 * The script of that page. When the inspector is ready, each frame of the socket is posted to it. A closed socket is reopened, and
 * starts with all present actors.
 */
export const statelyScript = `const frame = document.querySelector('iframe')
const { token } = document.body.dataset
let socket

function open() {
  socket = new WebSocket('ws' + location.origin.slice(4) + '/inspector/stately?token=' + encodeURIComponent(token))
  socket.onmessage = ({ data }) => frame.contentWindow.postMessage(JSON.parse(data), '${STATELY_ORIGIN}')
  socket.onclose = () => setTimeout(open, 1000)
}

addEventListener('message', ({ source, origin, data }) => {
  if (source === frame.contentWindow && origin === '${STATELY_ORIGIN}' && data?.type === '@statelyai.connected' && !socket) open()
})
`
