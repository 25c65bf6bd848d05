// The page that computes: a chain of SHA-256 digests, each of the one before in hexadecimal.
import crypto from 'crypto';

function page(r) {
    let value = r.args.seed;
    for (let round = 0; round < ROUNDS; round++)
        value = crypto.createHash('sha256').update(value).digest('hex');
    r.return(200, value);
}

export default {page};
