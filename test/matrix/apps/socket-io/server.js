import { createServer } from 'node:http'
import { Server } from 'socket.io'

const server = createServer((_request, response) =>
  response.setHeader('content-type', 'text/html').end('<script src="/socket.io/socket.io.js"></script>'),
)
new Server(server).on('connection', (socket) => {
  socket.on('echo', (message, respond) => respond(message))
})
server.listen(process.env.PORT)
