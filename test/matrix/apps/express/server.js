import { createHash } from 'node:crypto'
import { csrfSync } from 'csrf-sync'
import express from 'express'
import session from 'express-session'
import multer from 'multer'

const app = express()
app.set('trust proxy', 'loopback')
const cookie = { secure: 'auto' }
app.use(session({ secret: 'for tests', resave: false, saveUninitialized: false, cookie }))
app.use(express.urlencoded())

app.get('/', (_request, response) => response.send('home'))
app.get('/relative', (_request, response) => response.redirect('/'))
app.get('/absolute', ({ protocol, headers }, response) => response.redirect(`${protocol}://${headers.host}/`))

const { generateToken, csrfSynchronisedProtection } = csrfSync({
  getTokenFromRequest: ({ body }) => body.token,
})
app.get('/form', (request, response) => {
  const token = generateToken(request)
  response.send(`<form method="post">
    <input type="hidden" name="token" value="${token}"><input name="name"><button>Send</button></form>`)
})
app.post('/form', csrfSynchronisedProtection, ({ body }, response) => response.send(`Hello ${body.name}`))

app.post('/upload', multer().single('file'), ({ file, body }, response) => {
  response.json({ sha256: createHash('sha256').update(file.buffer).digest('hex'), note: body.note })
})

const streams = new Set()
app.get('/events', (_request, response) => {
  response.type('text/event-stream').write('data: first\n\n')
  streams.add(response.on('close', () => streams.delete(response)))
})
app.post('/events', (_request, response) => {
  for (const stream of streams) stream.write('data: second\n\n')
  response.end()
})

app.listen(process.env.PORT)
