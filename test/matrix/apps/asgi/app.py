import asyncio

posted = asyncio.Event()


async def app(scope, receive, send):
    if scope['type'] == 'websocket':
        await echo(receive, send)
    elif scope['type'] == 'http':
        await respond(scope, receive, send)


async def echo(receive, send):
    message = await receive()
    await send({'type': 'websocket.accept'})
    while message['type'] != 'websocket.disconnect':
        message = await receive()
        if message['type'] == 'websocket.receive':
            await send({'type': 'websocket.send', 'text': 'echo ' + message['text']})


async def respond(scope, receive, send):
    received = 0
    message = {'more_body': True}
    while message.get('more_body'):
        message = await receive()
        received += len(message.get('body', b''))
    events = scope['path'] == '/events' and scope['method'] == 'GET'
    content_type = b'text/event-stream' if events else b'text/html'
    await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'content-type', content_type)]})
    if scope['method'] == 'POST':
        posted.set()
    if events:
        await send({'type': 'http.response.body', 'body': b'data: first\n\n', 'more_body': True})
        await posted.wait()
        posted.clear()
    body = b'data: second\n\n' if events else str(received).encode()
    await send({'type': 'http.response.body', 'body': body})
