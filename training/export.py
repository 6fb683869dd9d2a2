"""Write a run as a network of 8-bit weights that onnxruntime reads.

    python -m training.export reader

The published graph is kept and gets the trained weights and the head; what a graph of our own would do is done already.
"""

import argparse
from pathlib import Path

import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from training.model import WINDOW, matrices
from training.pairs import BUILD
from training.worlds import LABELS

LARGEST = 23_000_000  # bytes
POSITIONS = "embeddings.position_embeddings.weight"  # those past the window are never read


def network(source: Path, weights: dict[str, torch.Tensor]) -> onnx.ModelProto:
    """The published network with other weights; gives a number for each label."""
    model = onnx.load(source)
    named = {matrix: bias.removesuffix("bias") + "weight" for bias, matrix in matrices(model).items()}
    for constant in model.graph.initializer:
        if constant.name in named:
            values = weights[named[constant.name]].T
        elif constant.name in weights:
            values = weights[constant.name]
            if constant.name == POSITIONS:
                values = values[:WINDOW]
        else:
            continue
        constant.CopyFrom(numpy_helper.from_array(values.contiguous().numpy(), constant.name))
    for name in ("pooler", "classifier"):
        model.graph.initializer.append(
            numpy_helper.from_array(weights[f"{name}.weight"].T.contiguous().numpy(), f"{name}.weight")
        )
        model.graph.initializer.append(numpy_helper.from_array(weights[f"{name}.bias"].numpy(), f"{name}.bias"))
    model.graph.initializer.append(helper.make_tensor("first", TensorProto.INT64, [], [0]))
    model.graph.node.extend(
        [
            helper.make_node("Gather", ["last_hidden_state", "first"], ["cls"], axis=1),
            helper.make_node("MatMul", ["cls", "pooler.weight"], ["pooler"]),
            helper.make_node("Add", ["pooler", "pooler.bias"], ["pooled"]),
            helper.make_node("Tanh", ["pooled"], ["bent"]),
            helper.make_node("MatMul", ["bent", "classifier.weight"], ["classifier"]),
            helper.make_node("Add", ["classifier", "classifier.bias"], ["labels"]),
        ]
    )
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("labels", TensorProto.FLOAT, ["pairs", len(LABELS)]))
    onnx.checker.check_model(model)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--start", type=Path, default=BUILD / "start.onnx")
    options = parser.parse_args()
    state = torch.load(BUILD / f"{options.run}.pt", weights_only=True)
    whole, small = BUILD / f"{options.run}.fp32.onnx", BUILD / f"{options.run}.onnx"
    onnx.save(network(options.start, state["reader"]), whole)
    quantize_dynamic(whole, small, weight_type=QuantType.QInt8, per_channel=True)
    size = small.stat().st_size
    print(f"{small}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(f"More than {LARGEST:,} bytes")


if __name__ == "__main__":
    main()
