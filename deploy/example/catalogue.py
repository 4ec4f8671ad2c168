"""A gRPC application without generated code: /example.Catalogue/List answers with as many items as it is asked for."""

import json
import sys
from concurrent import futures

import grpc


def listing(request, context):
    count = int(request or b"100")
    return json.dumps([{"id": number, "name": f"Item {number}"} for number in range(count)]).encode()


def main(address):
    server = grpc.server(futures.ThreadPoolExecutor(4))
    methods = {"List": grpc.unary_unary_rpc_method_handler(listing)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("example.Catalogue", methods)])
    port = server.add_insecure_port(address)
    if not port:
        sys.exit(f"cannot listen on {address}")
    server.start()
    print(f"listening on {address.rsplit(':', 1)[0]}:{port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "0.0.0.0:50051")
