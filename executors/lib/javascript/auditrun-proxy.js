/*
 * auditrun-proxy.js - makes fetch() of Node.js use the proxy of the sandbox.
 *
 * Node.js from 24 on does so by itself (NODE_USE_ENV_PROXY). Earlier ones look for the object that sends
 * their requests under a well-known symbol: this is one, made of http and https. It is preloaded
 * (NODE_OPTIONS) in runs that have a network.
 */
'use strict';

const DISPATCHER = Symbol.for('undici.globalDispatcher.1');

function headersOf(options) {
    const headers = {};
    const list = options.headers || [];
    if (Array.isArray(list)) {
        for (let i = 0; i + 1 < list.length; i += 2)
            headers[String(list[i])] = String(list[i + 1]);
        return headers;
    }
    for (const [name, value] of list[Symbol.iterator] ? list : Object.entries(list))
        headers[name] = value;
    return headers;
}

/* A connection to the origin through the proxy: a socket, by CONNECT. */
function tunnel(http, proxy, origin, done) {
    const port = origin.port || (origin.protocol === 'https:' ? 443 : 80);
    const request = http.request({
        host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: `${origin.hostname}:${port}`,
    });
    request.once('connect', (answer, socket) => {
        if (answer.statusCode === 200)
            return done(null, socket);
        socket.destroy();
        return done(new Error(`the proxy answered ${answer.statusCode}`));
    });
    request.once('error', done);
    request.end();
}

class Dispatcher {
    constructor(proxy) {
        this.proxy = proxy;
    }

    dispatch(options, handler) {
        const http = require('http');
        const origin = new URL(options.origin);
        tunnel(http, this.proxy, origin, (error, socket) => {
            if (error)
                return handler.onError(error);
            return this.send(options, handler, origin, socket);
        });
        return true;
    }

    send(options, handler, origin, socket) {
        const secure = origin.protocol === 'https:';
        const create = () => secure
            ? require('tls').connect({ socket, servername: origin.hostname, ALPNProtocols: ['http/1.1'] })
            : socket;
        const request = require(secure ? 'https' : 'http').request({
            method: options.method, path: options.path, host: origin.hostname,
            headers: { host: origin.host, ...headersOf(options), connection: 'close' },
            createConnection: create,
        });
        const abort = (reason) => request.destroy(reason || new Error('aborted'));
        request.once('error', (error) => handler.onError(error));
        request.once('response', (response) => this.receive(response, handler));
        handler.onConnect(abort);
        this.write(request, options.body).catch((error) => request.destroy(error));
    }

    async write(request, body) {
        if (body && typeof body !== 'string' && body[Symbol.asyncIterator]) {
            for await (const piece of body)
                request.write(piece);
            request.end();
        } else {
            request.end(body || undefined);
        }
    }

    receive(response, handler) {
        const raw = response.rawHeaders.map((text) => Buffer.from(text, 'latin1'));
        handler.onHeaders(response.statusCode, raw, () => response.resume(), response.statusMessage);
        response.on('data', (piece) => {
            if (handler.onData(piece) === false)
                response.pause();
        });
        response.once('end', () => handler.onComplete(null));
        response.once('error', (error) => handler.onError(error));
    }

    close() {
        return Promise.resolve();
    }

    destroy() {
        return Promise.resolve();
    }
}

const address = process.env.HTTP_PROXY;
if (address && parseInt(process.versions.node, 10) < 24)
    globalThis[DISPATCHER] = new Dispatcher(new URL(address));
